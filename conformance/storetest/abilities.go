package storetest

import (
	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

var waiter = []conformance.Need{conformance.Waiter}

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
