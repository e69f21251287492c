package storetest

import (
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// policyCases are about the policy that a record keeps: retries are judged by it, and not
// by their own.
var policyCases = []testCase{
	{
		conformance.Case{
			ID:     "policy-lapsed",
			Rule:   "A lapsed attempt that was claimed with AtMostOnce is never taken over, and one that was not is, whatever policy a retry has.",
			Source: "Store.Claim; Policy.AtMostOnce",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			for _, strict := range []bool{true, false} {
				first := e.caller()
				first.atMostOnce, first.lease = strict, e.short()
				first.claimNew()
				e.advance(first.lease)
				if strict {
					for _, retryStrict := range []bool{false, true} {
						retry := first.rival()
						retry.atMostOnce = retryStrict
						retry.claim(store.Lapsed)
					}
					first.claim(store.Claimed) // its owner goes on
					first.complete("answer")
					continue
				}
				retry := first.rival()
				retry.atMostOnce = true
				retry.claim(store.Claimed)
			}
		},
	},
	{
		conformance.Case{
			ID:     "policy-takeover",
			Rule:   "A takeover writes the policy of its claim: when it lapses as well, that policy decides.",
			Source: "Store.Claim; Policy",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first, _ := e.lapsed()
			second := first.rival()
			second.atMostOnce, second.lease = true, e.short()
			second.claim(store.Claimed)
			e.advance(second.lease)
			second.rival().claim(store.Lapsed)
		},
	},
	{
		conformance.Case{
			ID:     "horizon",
			Rule:   "When the retention of a completed record has ended, every claim answers Expired until its horizon has ended too, and Mismatch to another request.",
			Source: "Store.Claim; Policy.Horizon; G7 horizon",
		},
		func(e *env) {
			first := e.caller()
			first.retention, first.horizon = e.short(), long
			first.claimNew()
			first.complete("answer")
			e.advance(first.retention)
			retry := first.rival()
			retry.claim(store.Expired)
			retry.waiting = true // which some stores answer in another way
			retry.claim(store.Expired)
			first.claim(store.Expired)
			first.otherRequest().claim(store.Mismatch)
		},
	},
	{
		conformance.Case{
			ID:     "horizon-ends",
			Rule:   "When the horizon has ended, the ID is new for every request.",
			Source: "Store.Complete; Policy.Horizon; G7 horizon",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.retention, first.horizon = e.short(), e.short()
			first.complete("answer")
			e.advance(2 * e.short())
			first.otherRequest().claimNew()
		},
	},
	{
		conformance.Case{
			ID:     "horizon-at-the-end",
			Rule:   "A payload is replayed until the instant at which its retention ends, and its record is seen until the instant at which the horizon ends.",
			Source: "Store.Complete; Store, interface comment: at = expired",
			Needs:  []conformance.Need{conformance.ExactTime},
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.retention, first.horizon = e.short(), 2*e.short()
			e.advance(e.short())
			first.complete("answer")
			e.advance(first.retention - time.Nanosecond)
			first.rival().replay("answer")
			e.advance(time.Nanosecond)
			first.rival().claim(store.Expired)
			e.advance(first.horizon - time.Nanosecond)
			first.rival().claim(store.Expired)
			e.advance(time.Nanosecond)
			first.rival().claimNew()
		},
	},
	{
		conformance.Case{
			ID:     "horizon-of-record",
			Rule:   "The retention and horizon of a record decide, whatever those of a retry are.",
			Source: "Policy",
		},
		func(e *env) {
			kept, expired := e.caller(), e.caller()
			kept.claimNew()
			kept.complete("answer")
			expired.retention, expired.horizon = e.short(), long
			expired.claimNew()
			expired.complete("answer")
			e.advance(expired.retention)
			brief := kept.rival()
			brief.retention, brief.horizon = e.short(), long
			brief.replay("answer")
			expired.rival().claim(store.Expired) // its retention is long, and it has no horizon
		},
	},
	{
		conformance.Case{
			ID:     "horizon-of-attempt",
			Rule:   "An attempt that never completes is seen for its retention and its horizon, counted from its claim.",
			Source: "Store.Claim; Policy.Horizon",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.caller()
			first.lease, first.retention, first.horizon = e.short(), e.short(), long
			first.claimNew()
			e.advance(first.retention)
			careful := first.rival()
			careful.takeover = false
			careful.claim(store.Lapsed)
			first.complete("answer")
		},
	},
	{
		conformance.Case{
			ID:     "horizon-inspected",
			Rule:   "A record whose payload has ended is shown as expired, without payload or size, and for as long as it is seen.",
			Source: "StateExpired, Record",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			first.label, first.retention, first.horizon = "horizon-inspected", e.short(), long
			first.claimNew()
			first.complete("answer")
			e.advance(first.retention)
			got := first.inspect()
			if got.State != store.StateExpired || got.Payload != nil || got.Size != 0 || got.Lease != 0 || got.Policy != first.policy() {
				e.Errorf("inspected %+v", got)
			}
			e.wantTimes("expired", got, true)
			e.between("the validity", got.Validity, long/2, long)
			e.wantIDs("expired", e.listAll(store.Query{Label: first.label, States: store.States(store.StateExpired), Limit: 10}), []store.ID{first.id})
			e.wantIDs("completed", e.listAll(store.Query{Label: first.label, States: store.States(store.StateCompleted), Limit: 10}), nil)
			e.wantIDs("in pages", e.listAll(store.Query{Label: first.label, Limit: 1}), []store.ID{first.id})
			first.wantChanged("an expired record as a lapsed one", store.Resolution{Fence: got.Fence, Forget: true})
		},
	},
	{
		conformance.Case{
			ID:     "horizon-purge",
			Rule:   "Purging deletes a payload whose retention has ended, and not the record, whose horizon has not.",
			Source: "Purger",
			Needs:  []conformance.Need{conformance.Purger},
		},
		func(e *env) {
			first := e.caller()
			first.retention, first.horizon = e.short(), long
			first.claimNew()
			first.complete("answer")
			e.advance(first.retention)
			e.purge()
			first.rival().claim(store.Expired)
			first.otherRequest().claim(store.Mismatch)
		},
	},
	{
		conformance.Case{
			ID:     "resolve-horizon",
			Rule:   "What an operator resolved keeps the horizon of its policy, counted from the end of the retention that the operator gave.",
			Source: "Inspector.Resolve; Policy.Horizon",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			first.lease, first.retention, first.horizon = e.short(), e.short(), long
			granted := first.claimNew()
			e.advance(first.lease)
			if err := first.resolve(store.Resolution{Fence: granted.Fence, Payload: []byte("by hand"), Retention: long}); err != nil {
				e.Fatalf("resolve: %v, want success", err)
			}
			first.rival().replay("by hand")
			e.between("the validity", first.inspect().Validity, 3*long/2, 2*long)
		},
	},
	{
		conformance.Case{
			ID:     "resolve-remembers",
			Rule:   "What an operator resolved is seen for at least as long as it would have been otherwise, also where its payload ends earlier.",
			Source: "Inspector.Resolve",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			first, granted := e.lapsed()
			if err := first.resolve(store.Resolution{Fence: granted.Fence, Payload: []byte("by hand"), Retention: e.short()}); err != nil {
				e.Fatalf("resolve: %v, want success", err)
			}
			e.advance(e.short())
			first.rival().claim(store.Expired)
			first.otherRequest().claim(store.Mismatch)
		},
	},
}
