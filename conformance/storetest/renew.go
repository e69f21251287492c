package storetest

import (
	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

var renewCases = []testCase{
	{
		conformance.Case{
			ID:     "renew",
			Rule:   "A renewed lease is counted from the renewal and lasts as long as the renewal asks.",
			Source: "Store.Renew",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.caller()
			first.lease = e.short()
			first.claimNew()
			longer := first
			longer.lease = long
			longer.renew(store.Renewed)
			e.advance(first.lease)
			if got := first.rival().claim(store.InProgress); got.Remaining < long/2 {
				e.Errorf("%v remain after a renewal of %v", got.Remaining, long)
			}
			longer.complete("answer")
		},
	},
	{
		conformance.Case{
			ID:     "renew-shorter",
			Rule:   "A renewal can also shorten a lease.",
			Source: "Store.Renew",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.lease = e.short()
			first.renew(store.Renewed)
			e.advance(first.lease)
			if got := first.rival().claim(store.Claimed); got.Attempt != 2 {
				e.Errorf("the takeover is attempt %d, want 2", got.Attempt)
			}
		},
	},
	{
		conformance.Case{
			ID:     "renew-lapsed",
			Rule:   "The owner of a lapsed attempt can renew its lease until another owner takes over, and then excludes others again.",
			Source: "Store.Renew",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first, _ := e.lapsed()
			first.renew(store.Renewed)
			first.rival().claim(store.InProgress)
			first.complete("answer")
		},
	},
	{
		conformance.Case{
			ID:     "renew-not-owner",
			Rule:   "Renewing the lease of another owner answers RenewLost and extends nothing.",
			Source: "Store.Renew, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.caller()
			first.lease = e.short()
			first.claimNew()
			first.rival().renew(store.RenewLost)
			e.advance(first.lease)
			first.rival().claim(store.Claimed)
		},
	},
	{
		conformance.Case{
			ID:     "renew-zombie",
			Rule:   "After a takeover the former owner gets RenewLost, and the new attempt keeps its lease and its owner.",
			Source: "Store.Renew, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			stale, current := e.takenOver()
			stale.renew(store.RenewLost)
			e.advance(e.short())
			stale.claim(store.InProgress)
			current.complete("current")
		},
	},
	{
		conformance.Case{
			ID:     "renew-completed",
			Rule:   "After its completion an owner gets RenewCompleted and any other owner RenewLost; the record stays completed.",
			Source: "Store.Renew",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.complete("answer")
			first.renew(store.RenewCompleted)
			first.rival().renew(store.RenewLost)
			first.rival().replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "renew-nothing",
			Rule:   "Renewing an ID that was never claimed, or was released, answers RenewLost and creates nothing.",
			Source: "Store.Renew",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.caller()
			first.renew(store.RenewLost)
			first.claimNew()
			first.release()
			first.renew(store.RenewLost)
			first.rival().claimNew()
		},
	},
	{
		conformance.Case{
			ID:     "renew-unseen",
			Rule:   "A lapsed attempt past its validity cannot be renewed, purged or not.",
			Source: "Store, Records; Store.Renew",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.unseen()
			first.renew(store.RenewLost)
			first.otherRequest().claimNew()
		},
	},
	{
		conformance.Case{
			ID:     "renew-validity",
			Rule:   "A renewal does not change the validity: once a renewed lease lapses past it, the record is unseen.",
			Source: "Store.Renew",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.caller()
			first.lease, first.retention = long, e.short()
			first.claimNew()
			e.advance(first.retention)
			first.lease = e.short()
			first.renew(store.Renewed)
			e.advance(first.lease)
			careful := first.otherRequest()
			careful.takeover = false
			careful.claimNew()
		},
	},
	{
		conformance.Case{
			ID:     "renew-batch",
			Rule:   "A batch is answered entry by entry, in order, and an invalid entry does not affect the others.",
			Source: "Store.Renew",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			stale, current := e.takenOver()
			lapsed, _ := e.lapsed()
			running, done, nobody := e.caller(), e.caller(), e.caller()
			running.claimNew()
			done.claimNew()
			done.complete("answer")

			batch := []caller{running, stale, lapsed, done, nobody, current}
			want := []store.RenewStatus{
				store.Renewed, store.RenewLost, store.Renewed, store.RenewCompleted, store.RenewLost, store.Renewed,
			}
			for range 3 { // more entries than one, in another order, in another process
				got := e.renewAll(batch...)
				for i := range want {
					if got[i] != want[i] {
						e.Errorf("entry %d is answered %v, want %v", i, got[i], want[i])
					}
				}
				batch, want = append(batch[1:], batch[0]), append(want[1:], want[0])
			}
		},
	},
	{
		conformance.Case{
			ID:     "renew-many",
			Rule:   "A batch of a thousand attempts is renewed in one call.",
			Source: "Store.Renew",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			batch := make([]caller, 1000)
			for i := range batch {
				batch[i] = e.caller()
			}
			for i := 0; i < len(batch); i += 100 { // the others were never claimed
				batch[i].claimNew()
			}
			for i, status := range e.renewAll(batch...) {
				want := store.RenewLost
				if i%100 == 0 {
					want = store.Renewed
				}
				if status != want {
					e.Fatalf("entry %d is answered %v, want %v", i, status, want)
				}
			}
		},
	},
	{
		conformance.Case{
			ID:     "renew-empty",
			Rule:   "An empty batch is not an error and has no answers.",
			Source: "Store.Renew",
		},
		func(e *env) {
			ctx, cancel := e.call()
			defer cancel()
			for _, batch := range [][]store.RenewRequest{nil, {}} {
				if got, err := e.one.Renew(ctx, batch); err != nil || len(got) != 0 {
					e.Errorf("an empty batch is answered %v, %v", got, err)
				}
			}
		},
	},
}
