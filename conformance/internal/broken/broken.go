// Package broken has stores and adapters that are wrong on purpose: a store that keeps
// the whole contract and an adapter for net/http that keeps every rule, each with one
// flaw at a time. A suite proves its rules only when it rejects a violation, so each flaw
// names a case that rejects it, and a test runs them all.
//
// A store with a flaw is the right one behind a decorator of a line: it swaps what a call
// asks or is answered, drops it, delays it, or forgets a record.
//
// Without a flaw both are references to compare others with. Do not use them for anything
// else: the store has one lock; the adapter remembers every response.
package broken

import (
	"errors"
	"slices"
)

// Flaw is one mistake. The zero value is no mistake.
type Flaw string

// Mutant is a store or an adapter with a flaw.
type Mutant struct {
	Flaw Flaw
	Does string // the wrong behaviour
	Case string // the ID of a case that rejects it
}

// Stores returns every store with a flaw.
func Stores() []Mutant {
	var all []Mutant
	for _, f := range storeFlaws() {
		all = append(all, f.Mutant)
	}
	return all
}

func storeFlaws() []storeFlaw {
	return slices.Concat(claimFlaws, completeFlaws, releaseFlaws, renewFlaws, unknownFlaws, recordFlaws, policyFlaws, operatorFlaws, transactionFlaws())
}

type storeFlaw struct {
	Mutant

	hooks []hook
}

// hook is what a flaw does to the calls of an operation.
type hook struct {
	op   op
	when moment
	do   func(*call)
}

// moment is when a hook runs: before a call is executed, or after it.
type moment bool

const (
	before moment = false
	after  moment = true
)

// flawed is a store with a flaw.
func flawed(flaw Flaw, does, rejectedBy string, hooks ...hook) storeFlaw {
	return storeFlaw{Mutant{flaw, does, rejectedBy}, hooks}
}

// swaps changes the request, and flips the answer.
func swaps(op op, do func(*call)) hook { return hook{op, before, do} }
func flips(op op, do func(*call)) hook { return hook{op, after, do} }

// drops answers a call without executing it, with an error or none.
func drops(op op, err error, when func(*call) bool) hook {
	return swaps(op, func(c *call) {
		if when(c) {
			c.skipped, c.err = true, err
		}
	})
}

// accepts answers a call that failed with success.
func accepts(op op, failure error, when func(*call) bool) hook {
	return flips(op, func(c *call) {
		if errors.Is(c.err, failure) && when(c) {
			c.err, c.skipped = nil, true
		}
	})
}

// impersonates makes a call that of the owner.
func impersonates(op op, when func(*call) bool) hook {
	return swaps(op, func(c *call) {
		if when(c) && !c.owner.IsZero() {
			*c.from = c.owner
		}
	})
}
