package storetest

import (
	"context"
	"time"

	"github.com/reprise-go/reprise/conformance"

	reprise "github.com/reprise-go/reprise/core"
)

var abilityCases = []testCase{
	{
		conformance.Case{
			ID:     "watch-completion",
			Rule:   "Who watches an ID is woken when it is completed in another process.",
			Source: "Waiter",
			Needs:  []conformance.Need{conformance.Waiter},
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			first.wakes(func() { first.complete("answer") })
		},
	},
	{
		conformance.Case{
			ID:     "watch-release",
			Rule:   "Who watches an ID is woken when it is released in another process.",
			Source: "Waiter",
			Needs:  []conformance.Need{conformance.Waiter},
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			first.wakes(first.release)
		},
	},
	{
		conformance.Case{
			ID:     "watch-stop",
			Rule:   "A watch that is stopped, once or twice, leaves the other watches of its ID alone.",
			Source: "Waiter.Watch",
			Needs:  []conformance.Need{conformance.Waiter},
		},
		func(r *rig) {
			first := r.party()
			first.anew()
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
			Rule:   "The context that Bind returns has the values and the end of the one that it was given.",
			Source: "ContextBinder",
			Needs:  []conformance.Need{conformance.Binder},
		},
		func(r *rig) {
			type key struct{}
			first := r.party()
			first.anew()
			ctx, cancel := context.WithCancel(context.WithValue(r.Context(), key{}, "value"))
			defer cancel()
			bound := ability[reprise.ContextBinder](first.store).Bind(ctx, first.id, first.owner)
			if bound.Value(key{}) != "value" {
				r.Error("a value of the context is lost")
			}
			if err := bound.Err(); err != nil {
				r.Errorf("the context has ended: %v", err)
			}
			cancel()
			select {
			case <-bound.Done():
			case <-time.After(callLimit):
				r.Error("the context does not end with the one that it was made from")
			}
		},
	},
	{
		conformance.Case{
			ID:     "check-findings",
			Rule:   "A check of a server that works is no error, and each finding has a code, a grade and a text.",
			Source: "Checker, Finding",
			Needs:  []conformance.Need{conformance.Checker},
		},
		func(r *rig) {
			ctx, cancel := r.call()
			defer cancel()
			findings, err := ability[reprise.Checker](r.one).Check(ctx)
			r.checkError("check", err)
			if err != nil {
				r.Fatalf("check: %v, want success", err)
			}
			for _, f := range findings {
				if f.Code == "" || f.Detail == "" || f.Severity < reprise.Warning || f.Severity > reprise.Unsafe {
					r.Errorf("incomplete: %+v", f)
				}
			}
		},
	},
}

// watch watches the ID of p in the other process.
func (p party) watch() (changed <-chan struct{}, stop func()) {
	p.rig.Helper()
	changed, stop, err := ability[reprise.Waiter](p.rig.two).Watch(p.rig.Context(), p.id)
	p.checkError("watch", err)
	if err != nil {
		p.rig.Fatalf("watch: %v, want success", err)
	}
	return changed, stop
}

// wakes demands that a watch is woken by an action. A watch is a hint that may stay away when something fails, and here
// nothing does.
func (p party) wakes(action func()) {
	p.rig.Helper()
	changed, stop := p.watch()
	defer stop()
	action()
	patience := time.NewTimer(callLimit)
	defer patience.Stop()
	select {
	case <-changed:
	case <-patience.C:
		p.rig.Fatalf("a watch was not woken within %v", callLimit)
	}
}
