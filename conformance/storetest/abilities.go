package storetest

import (
	"context"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

var (
	waiter = []conformance.Need{conformance.Waiter}
	binder = []conformance.Need{conformance.Binder}
)

var abilityCases = []testCase{
	scenario("watch-completion", waiter, "Waiter",
		"A watch of an ID wakes when the ID is completed in another process.",
		a.claims(first), a.wakes(a.completes("answer"))),
	scenario("watch-release", waiter, "Waiter",
		"A watch of an ID wakes when the ID is released in another process.",
		a.claims(first), a.wakes(a.releases())),
	function("watch-stop", waiter, "Waiter.Watch",
		"Stopping a watch, once or twice, does not affect the other watches of its ID.",
		func(s *scene) {
			s.must(a.claims(first))
			_, stop, err := s.caller(a).watch()
			if err != nil {
				s.Fatal(err)
			}
			s.must(a.wakes(a.call("stops another watch, and completes", func(s *scene, _ *caller) error {
				stop()
				stop()
				return a.completes("answer").do(s)
			})))
			stop()
		}),
	function("bind-context", binder, "ContextBinder",
		"The context that Bind returns has the values of its parent and ends with it.",
		func(s *scene) {
			type key struct{}
			s.must(a.claims(first))
			c := s.caller(a)
			ctx, cancel := context.WithCancel(context.WithValue(s.Context(), key{}, "value"))
			defer cancel()
			bound := ability[store.ContextBinder](c.store).Bind(ctx, c.ID, c.Owner)
			if bound.Value(key{}) != "value" || bound.Err() != nil {
				s.Errorf("the context has the value %v, and has ended: %v", bound.Value(key{}), bound.Err())
			}
			cancel()
			select {
			case <-bound.Done():
			case <-time.After(callLimit):
				s.Error("the context does not end with the one that it was made from")
			}
		}),
	function("bind-atomic", binder, "ContextBinder.Atomic, ClaimResult.Atomic",
		"A store that binds contexts says of its claims what they say themselves: that they are Atomic, or that they are not.",
		func(s *scene) {
			s.must(a.claims(first))
			c := s.caller(a)
			if said := ability[store.ContextBinder](c.store).Atomic(); said != c.granted.Atomic {
				s.Errorf("the store says Atomic %v, and grants a claim with %v", said, c.granted.Atomic)
			}
		}),
	function("leased", []conformance.Need{conformance.Leaser, conformance.Inspector}, "Leaser",
		"The leased store of an Atomic one grants claims with a lease, on the records that the Atomic one shows.",
		func(s *scene) {
			c := s.caller(a)
			c.store = ability[store.Leaser](s.one).Leased()
			got, err := ask(c, "claim", func(ctx context.Context) (store.ClaimResult, error) { return c.store.Claim(ctx, c.ClaimRequest) })
			if err != nil || got.Outcome != store.Claimed || got.Atomic {
				s.Fatalf("claim answered %+v, %v, want one with a lease", got, err)
			}
			s.must(lists(store.Query{States: store.States(store.StateRunning)}, a), a.releases())
		}),
	function("check-findings", []conformance.Need{conformance.Checker}, "Checker, Finding",
		"A check of a working server succeeds, and each finding has a code, a severity and a detail.",
		func(s *scene) {
			findings, err := ask(s.caller(a), "check", ability[store.Checker](s.one).Check)
			if err != nil {
				s.Fatalf("check: %v, want success", err)
			}
			for _, f := range findings {
				if f.Code == "" || f.Detail == "" || f.Severity < store.Warning || f.Severity > store.Unsafe {
					s.Errorf("incomplete: %+v", f)
				}
			}
		}),
}
