package storetest

import (
	"fmt"
	"slices"

	"github.com/reprise-go/reprise/core/store"
)

// actor is an owner in a table of steps. What a step gives an actor, such as a lease,
// stays with it: for its next claim, its renewals and its completion.
type actor struct {
	name      string
	operation int
	there     bool // in the other process
	different bool // with a different request
	gives     []func(*caller)
}

// The owners of a table. Those after a are its rivals; x and y use the same ID for a
// different request.
var (
	a = actor{name: "a"}
	b = actor{name: "b", there: true}
	c = actor{name: "c", there: true}
	d = actor{name: "d"}
	x = actor{name: "x", there: true, different: true}
	y = actor{name: "y", different: true}
)

// String returns the actor as a failure prints it.
func (p actor) String() string {
	if p.operation == 0 {
		return p.name
	}
	return fmt.Sprintf("%s of %d", p.name, p.operation)
}

func (p actor) given(give func(*caller)) actor {
	p.gives = append(slices.Clone(p.gives), give)
	return p
}

// of is the actor in another operation of the case.
func (p actor) of(operation int) actor {
	p.operation = operation
	return p
}

func (p actor) lease(d span) actor   { return p.given(func(c *caller) { c.Lease = d.in(c.env) }) }
func (p actor) keep(d span) actor    { return p.given(func(c *caller) { c.Retention = d.in(c.env) }) }
func (p actor) horizon(d span) actor { return p.given(func(c *caller) { c.Horizon = d.in(c.env) }) }

func (p actor) strict(yes bool) actor   { return p.given(func(c *caller) { c.AtMostOnce = yes }) }
func (p actor) takeover(yes bool) actor { return p.given(func(c *caller) { c.Takeover = yes }) }
func (p actor) max(n int) actor         { return p.given(func(c *caller) { c.MaxAttempts = n }) }
func (p actor) scope(n uint64) actor    { return p.given(func(c *caller) { c.Scope = n }) }
func (p actor) waiting() actor          { return p.given(func(c *caller) { c.Waiting = true }) }
func (p actor) label(s string) actor    { return p.given(func(c *caller) { c.Label = s }) }

func (p actor) describe(s string) actor { return p.given(func(c *caller) { c.Description = s }) }

// forgetful forgets the fields of its claim, which its completion then lacks.
func (p actor) forgetful() actor { return p.given(func(c *caller) { c.forgot = true }) }

// knowing gives what another's claim was granted.
func (p actor) knowing(other actor) actor {
	return p.given(func(c *caller) { c.granted = c.scene.caller(other).granted })
}

// elsewhere is the actor in the other process.
func (p actor) elsewhere() actor { return p.given(func(c *caller) { c.store = c.two }) }

// id sets the first and the last byte of an ID that is otherwise that of operation 0.
func (p actor) id(first, last byte) actor {
	return p.given(func(c *caller) {
		c.ID = c.scene.operation(0).id
		c.ID[0], c.ID[len(c.ID)-1] = first, last
		c.operation.id = c.ID
	})
}

func (p actor) print(f store.Fingerprint) actor {
	return p.given(func(c *caller) { c.Fingerprint = f })
}

func (p actor) owner(o store.Owner) actor { return p.given(func(c *caller) { c.Owner = o }) }
