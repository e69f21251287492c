package storetest

import (
	"context"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

var abilityCases = []testCase{
	{
		conformance.Case{
			ID:     "watch-completion",
			Rule:   "A watch of an ID wakes when the ID is completed in another process.",
			Source: "Waiter",
			Needs:  []conformance.Need{conformance.Waiter},
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.wakes(func() { first.complete("answer") })
		},
	},
	{
		conformance.Case{
			ID:     "watch-release",
			Rule:   "A watch of an ID wakes when the ID is released in another process.",
			Source: "Waiter",
			Needs:  []conformance.Need{conformance.Waiter},
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.wakes(first.release)
		},
	},
	{
		conformance.Case{
			ID:     "watch-stop",
			Rule:   "Stopping a watch, once or twice, does not affect the other watches of its ID.",
			Source: "Waiter.Watch",
			Needs:  []conformance.Need{conformance.Waiter},
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			_, stop := first.watch()
			first.wakes(func() {
				stop()
				stop()
				first.complete("answer")
			})
			stop()
		},
	},
	{
		conformance.Case{
			ID:     "bind-context",
			Rule:   "The context that Bind returns has the values of its parent and ends with it.",
			Source: "ContextBinder",
			Needs:  []conformance.Need{conformance.Binder},
		},
		func(e *env) {
			type key struct{}
			first := e.caller()
			first.claimNew()
			ctx, cancel := context.WithCancel(context.WithValue(e.Context(), key{}, "value"))
			defer cancel()
			bound := ability[store.ContextBinder](first.store).Bind(ctx, first.id, first.owner)
			if bound.Value(key{}) != "value" {
				e.Error("a value of the context is lost")
			}
			if err := bound.Err(); err != nil {
				e.Errorf("the context has ended: %v", err)
			}
			cancel()
			select {
			case <-bound.Done():
			case <-time.After(callLimit):
				e.Error("the context does not end with the one that it was made from")
			}
		},
	},
	{
		conformance.Case{
			ID:     "bind-atomic",
			Rule:   "A store that binds contexts says of its claims what they say themselves: that they are Atomic, or that they are not.",
			Source: "ContextBinder.Atomic, ClaimResult.Atomic",
			Needs:  []conformance.Need{conformance.Binder},
		},
		func(e *env) {
			first := e.caller()
			if granted, said := first.claimNew(), ability[store.ContextBinder](first.store).Atomic(); said != granted.Atomic {
				e.Errorf("the store says Atomic %v, and grants a claim with %v", said, granted.Atomic)
			}
		},
	},
	{
		conformance.Case{
			ID:     "leased",
			Rule:   "The leased store of an Atomic one grants claims with a lease, on the records that the Atomic one shows.",
			Source: "Leaser",
			Needs:  []conformance.Need{conformance.Leaser, conformance.Inspector},
		},
		func(e *env) {
			first, leased := e.caller(), ability[store.Leaser](e.one).Leased()
			ctx, cancel := e.call()
			defer cancel()
			if got, err := leased.Claim(ctx, first.claimRequest()); err != nil || got.Outcome != store.Claimed || got.Atomic {
				e.Fatalf("claim answered %+v, %v, want one with a lease", got, err)
			}
			e.wantIDs("running", e.listAll(store.Query{States: store.States(store.StateRunning), Label: first.label, Limit: 100}), []store.ID{first.id})
			if err := leased.Release(ctx, first.id, first.owner); err != nil {
				e.Errorf("release: %v, want success", err)
			}
		},
	},
	{
		conformance.Case{
			ID:     "check-findings",
			Rule:   "A check of a working server succeeds, and each finding has a code, a severity and a detail.",
			Source: "Checker, Finding",
			Needs:  []conformance.Need{conformance.Checker},
		},
		func(e *env) {
			ctx, cancel := e.call()
			defer cancel()
			findings, err := ability[store.Checker](e.one).Check(ctx)
			e.checkError("check", err)
			if err != nil {
				e.Fatalf("check: %v, want success", err)
			}
			for _, f := range findings {
				if f.Code == "" || f.Detail == "" || f.Severity < store.Warning || f.Severity > store.Unsafe {
					e.Errorf("incomplete: %+v", f)
				}
			}
		},
	},
}

// watch watches the ID of c in the other process, and claims there as a waiter does.
func (c caller) watch() (changed <-chan struct{}, stop func()) {
	c.env.Helper()
	changed, stop, err := ability[store.Waiter](c.env.two).Watch(c.env.Context(), c.id)
	c.checkError("watch", err)
	if err != nil {
		c.env.Fatalf("watch: %v, want success", err)
	}
	waiter := c.rival()
	waiter.waiting = true
	waiter.claim(store.InProgress)
	return changed, stop
}

// wakes fails unless an action wakes a watch. A watch is a hint, but it may be missing
// only when something fails.
func (c caller) wakes(action func()) {
	c.env.Helper()
	changed, stop := c.watch()
	defer stop()
	action()
	patience := time.NewTimer(callLimit)
	defer patience.Stop()
	select {
	case <-changed:
	case <-patience.C:
		c.env.Fatalf("a watch was not woken within %v", callLimit)
	}
}
