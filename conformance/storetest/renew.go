package storetest

import (
	"context"
	"fmt"

	"github.com/reprise-go/reprise/core/store"
)

var renewCases = []testCase{
	scenario("renew", nil, "Store.Renew",
		"A renewed lease is counted from the renewal and lasts as long as the renewal asks.",
		a.lease(short).claims(first), a.lease(long).renews(store.Renewed), passes(short), b.claims(inProgress.leaving(hour/2, hour)), a.completes("answer")),
	scenario("renew-shorter", nil, "Store.Renew",
		"A renewal can also shorten a lease.",
		a.claims(first), a.lease(short).renews(store.Renewed), passes(short), b.claims(attempt(2))),
	scenario("renew-lapsed", nil, "Store.Renew",
		"The owner of a lapsed attempt can renew its lease until another owner takes over, and then excludes others again.",
		a.lapses(1), a.renews(store.Renewed), b.claims(inProgress), a.completes("answer")),
	scenario("renew-not-owner", nil, "Store.Renew, G3 fencing",
		"Renewing the lease of another owner answers RenewLost and extends nothing.",
		a.lease(short).claims(first), b.renews(store.RenewLost), passes(short), c.claims(attempt(2))),
	scenario("renew-zombie", nil, "Store.Renew, G3 fencing",
		"After a takeover the former owner gets RenewLost, and the new attempt keeps its lease and its owner.",
		a.lapses(1), b.claims(attempt(2)), a.renews(store.RenewLost), passes(short), a.claims(inProgress), b.completes("current")),
	scenario("renew-completed", nil, "Store.Renew",
		"After its completion an owner gets RenewCompleted and any other owner RenewLost; the record stays completed.",
		a.claims(first), a.completes("answer"), a.renews(store.RenewCompleted), b.renews(store.RenewLost), c.claims(replay("answer"))),
	scenario("renew-nothing", nil, "Store.Renew",
		"Renewing an ID that was never claimed, or was released, answers RenewLost and creates nothing.",
		a.renews(store.RenewLost), a.claims(first), a.releases(), a.renews(store.RenewLost), b.claims(first)),
	scenario("renew-unseen", nil, "Store, Records; Store.Renew",
		"A lapsed attempt past its validity cannot be renewed, purged or not.",
		a.ends(), a.renews(store.RenewLost), x.claims(first)),
	scenario("renew-validity", nil, "Store.Renew",
		"A renewal does not change the validity: once a renewed lease lapses past it, the record is unseen.",
		a.keep(short).claims(first), passes(short), a.lease(short).renews(store.Renewed), passes(short), x.takeover(false).claims(first)),
	scenario("renew-batch", nil, "Store.Renew",
		"A batch is answered entry by entry, in order, and an invalid entry does not affect the others.",
		a.lapses(1), b.claims(attempt(2)), a.of(1).lapses(1), a.of(2).claims(first), a.of(3).claims(first), a.of(3).completes("answer"),
		renewsAll([]actor{a.of(2), b, a, a.of(1), a.of(3), a.of(4)},
			store.Renewed, store.Renewed, store.RenewLost, store.Renewed, store.RenewCompleted, store.RenewLost)),
	function("renew-many", nil, "Store.Renew",
		"A batch of a thousand attempts is renewed in one call.",
		func(s *scene) {
			var batch []*caller
			for i := range 1000 {
				if i%100 == 0 { // the others were never claimed
					s.must(a.of(i).claims(first))
				}
				batch = append(batch, s.caller(a.of(i)))
			}
			got, err := batch[0].tryRenew(batch[1:]...)
			if err != nil {
				s.Fatalf("renew: %v, want an answer", err)
			}
			for i, status := range got {
				if want := i%100 == 0; (status == store.Renewed) != want || (status == store.RenewLost) == want {
					s.Fatalf("entry %d is answered %v, renewed should be %v", i, status, want)
				}
			}
		}),
	function("renew-empty", nil, "Store.Renew",
		"An empty batch is not an error and has no answers.",
		func(s *scene) {
			for _, batch := range [][]store.RenewRequest{nil, {}} {
				got, err := ask(s.caller(a), "renew", func(ctx context.Context) ([]store.RenewStatus, error) { return s.one.Renew(ctx, batch) })
				if err != nil || len(got) != 0 {
					s.Errorf("an empty batch is answered %v, %v", got, err)
				}
			}
		}),
}

// renewsAll renews a batch three times, each time in another order and through another
// caller's handle, and demands a status for each entry.
func renewsAll(batch []actor, want ...store.RenewStatus) step {
	return step{"a batch is renewed", func(s *scene) error {
		s.Helper()
		var callers []*caller
		for _, p := range batch {
			callers = append(callers, s.caller(p))
		}
		want := want
		for range 3 {
			got, err := callers[0].tryRenew(callers[1:]...)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				return unlike("renew", got, err, want)
			}
			callers, want = append(callers[1:], callers[0]), append(want[1:], want[0])
		}
		return nil
	}}
}
