package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

const unknownReason = "the bank timed out"

// unknown returns the owner of an attempt whose outcome is unknown.
func (e *env) unknown() caller {
	e.Helper()
	first := e.caller()
	first.claimNew()
	first.unknown(unknownReason)
	return first
}

// unknownCases are about attempts that ended without a result that can be told.
var unknownCases = []testCase{
	{
		conformance.Case{
			ID:     "unknown-claim",
			Rule:   "An attempt whose outcome is unknown answers Lapsed at once, whatever policy it was claimed with and whatever a retry allows.",
			Source: "Store.Unknown, Store.Claim",
		},
		func(e *env) {
			first := e.unknown()
			for _, strict := range []bool{false, true} {
				retry := first.rival()
				retry.atMostOnce = strict
				retry.claim(store.Lapsed)
			}
			waits := first.rival()
			waits.waiting = true
			waits.claim(store.Lapsed)
		},
	},
	{
		conformance.Case{
			ID:     "unknown-claim-own",
			Rule:   "The owner that said that the outcome is unknown gets Lapsed as any other.",
			Source: "Store.Unknown, Store.Claim",
		},
		func(e *env) {
			first := e.unknown()
			first.claim(store.Lapsed)
			first.takeover = false
			first.claim(store.Lapsed)
		},
	},
	{
		conformance.Case{
			ID:     "unknown-mismatch",
			Rule:   "An unknown outcome is bound to its request: another one is a mismatch.",
			Source: "Store.Unknown, G6 binding",
		},
		func(e *env) {
			first := e.unknown()
			first.otherRequest().claim(store.Mismatch)
		},
	},
	{
		conformance.Case{
			ID:     "unknown-ends",
			Rule:   "After Unknown the owner can neither renew, complete nor release: RenewLost, ErrLeaseLost, and nothing.",
			Source: "Store.Unknown, G3 fencing",
		},
		func(e *env) {
			first := e.unknown()
			first.renew(store.RenewLost)
			first.rival().claim(store.Lapsed)
			first.completeLost("after all")
			first.rival().claim(store.Lapsed)
			first.release()
			first.rival().claim(store.Lapsed)
		},
	},
	{
		conformance.Case{
			ID:     "unknown-not-owner",
			Rule:   "Unknown by an owner that is not the record's is ErrLeaseLost and changes nothing.",
			Source: "Store.Unknown, G3 fencing",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.rival().unknownLost()
			first.rival().claim(store.InProgress)
			first.complete("answer")
			first.rival().replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "unknown-zombie",
			Rule:   "After a takeover the former owner's Unknown is ErrLeaseLost, and the new attempt goes on.",
			Source: "Store.Unknown, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			stale, current := e.takenOver()
			stale.unknownLost()
			stale.rival().claim(store.InProgress)
			current.complete("current")
		},
	},
	{
		conformance.Case{
			ID:     "unknown-completed",
			Rule:   "Unknown after a completion is ErrLeaseLost, and the record stays completed.",
			Source: "Store.Unknown",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.complete("answer")
			first.unknownLost()
			first.rival().replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "unknown-nothing",
			Rule:   "Unknown for an ID that was never claimed, or was released, is ErrLeaseLost and creates nothing.",
			Source: "Store.Unknown",
		},
		func(e *env) {
			first := e.caller()
			first.unknownLost()
			first.claimNew()
			first.release()
			first.unknownLost()
			first.rival().claimNew()
		},
	},
	{
		conformance.Case{
			ID:     "unknown-repeat",
			Rule:   "A repeated Unknown succeeds and keeps the reason of the first call.",
			Source: "Store.Unknown; Store, Repetition",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			first := e.unknown()
			again := first
			again.store = e.two
			again.unknown("another reason")
			again.claim(store.Lapsed)
			if got := first.inspect(); got.Reason != unknownReason {
				e.Errorf("inspected %+v", got)
			}
		},
	},
	{
		conformance.Case{
			ID:     "unknown-late",
			Rule:   "An owner whose lease has run out can still say that the outcome is unknown, until another owner takes over.",
			Source: "Store.Unknown",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first, _ := e.lapsed()
			first.unknown(unknownReason)
			first.rival().claim(store.Lapsed)
		},
	},
	{
		conformance.Case{
			ID:     "unknown-validity",
			Rule:   "An unknown outcome is seen for its retention and horizon, counted from Unknown; then the ID is new.",
			Source: "Store.Unknown; Policy",
		},
		func(e *env) {
			e.unhurried(func(d time.Duration) bool {
				first := e.caller()
				first.lease, first.retention, first.horizon = long, 2*d, 2*d
				began := e.now()
				first.claimNew()
				e.advance(2 * d)
				first.unknown(unknownReason)
				e.advance(3 * d)
				retry := first.rival()
				got, err := retry.tryClaim()
				if err != nil {
					e.Fatalf("claim: %v", err)
				}
				if e.now().Sub(began) >= 6*d {
					return false // it may have ended
				}
				if got.Outcome != store.Lapsed {
					e.Errorf("claim answered %v before the end, want %v", got.Outcome, store.Lapsed)
				}
				e.advance(d)
				first.otherRequest().claimNew()
				return true
			})
		},
	},
	{
		conformance.Case{
			ID:     "unknown-inspected",
			Rule:   "An operator sees an unknown outcome with its reason, as AtMostOnce and without a lease; a listing tells it from a lapse.",
			Source: "StateUnknown, Record.Reason",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			first.label, first.horizon = "unknown-inspected", long
			granted := first.claimNew()
			reason := strings.Repeat("~ ", store.MaxReason/2) + "."
			first.unknown(reason)
			want := first.policy()
			want.AtMostOnce = true
			got := first.inspect()
			if got.State != store.StateUnknown || got.Reason != reason || got.Policy != want || got.Payload != nil || got.Size != 0 || got.Attempt != 1 {
				e.Errorf("inspected %+v, want the policy %+v", got, want)
			}
			if !e.fixture.Atomic && got.Fence != granted.Fence {
				e.Errorf("fence %d, want %d", got.Fence, granted.Fence)
			}
			e.wantTimes("unknown", got, false)
			e.between("the lease", got.Lease, -long, 0)
			e.between("the validity", got.Validity, 3*long/2, 2*long)
			only := func(s store.RecordState) []store.Record {
				return e.listAll(store.Query{Label: first.label, States: store.States(s), Limit: 10})
			}
			listed := only(store.StateUnknown)
			e.wantIDs("unknown", listed, []store.ID{first.id})
			for _, r := range listed {
				if r.Reason != reason || r.State != store.StateUnknown {
					e.Errorf("listed %+v", r)
				}
			}
			e.wantIDs("lapsed", only(store.StateLapsed), nil)
			e.wantIDs("running", only(store.StateRunning), nil)
		},
	},
	{
		conformance.Case{
			ID:     "unknown-resolve",
			Rule:   "An operator resolves an unknown outcome as one that lapsed, by its fence: with a result, or by forgetting it.",
			Source: "Inspector.Resolve",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			for _, forget := range []bool{false, true} {
				first := e.unknown()
				fence := first.inspect().Fence
				resolution := store.Resolution{Fence: fence + 1, Forget: forget, Payload: []byte("by hand"), Retention: long}
				first.wantChanged("another fence", resolution)
				resolution.Fence = fence
				if err := first.resolve(resolution); err != nil {
					e.Fatalf("resolve: %v, want success", err)
				}
				if forget {
					first.otherRequest().claimNew()
					continue
				}
				first.rival().replay("by hand")
				first.completeLost("of the former owner")
				first.unknownLost()
				if got := first.inspect(); got.State != store.StateCompleted || got.Reason != "" || !got.Resolved {
					e.Errorf("inspected %+v of a resolved record", got)
				}
			}
		},
	},
	{
		conformance.Case{
			ID:     "unknown-watch",
			Rule:   "A watch of an ID wakes when its outcome becomes unknown in another process.",
			Source: "Waiter",
			Needs:  []conformance.Need{conformance.Waiter},
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			waits := first.rival()
			waits.waiting = true
			waits.claim(store.InProgress)
			first.wakes(func() { first.unknown(unknownReason) })
		},
	},
	{
		conformance.Case{
			ID:     "unknown-invalid",
			Rule:   "A reason that is empty, too long or not printable ASCII is ErrInvalid, and the attempt goes on.",
			Source: "UnknownRequest.Validate",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			for _, reason := range []string{"", strings.Repeat("x", store.MaxReason+1), "caf\u00e9", "a\nb", "\x00", "\x7f"} {
				e.wantInvalid("unknown", first.tryUnknown(reason))
			}
			nobody := first
			nobody.owner = store.Owner{}
			e.wantInvalid("unknown", nobody.tryUnknown(unknownReason))
			first.rival().claim(store.InProgress)
			first.complete("answer")
		},
	},
}

// unknown says that the outcome is unknown, and demands success.
func (c caller) unknown(reason string) {
	c.env.Helper()
	if err := c.tryUnknown(reason); err != nil {
		c.env.Fatalf("unknown: %v, want success", err)
	}
}

// unknownLost demands that the lease is reported as lost.
func (c caller) unknownLost() {
	c.env.Helper()
	if err := c.tryUnknown("of another"); !errors.Is(err, store.ErrLeaseLost) {
		c.env.Fatalf("unknown: error %v, want ErrLeaseLost", err)
	}
}

func (c caller) tryUnknown(reason string) error {
	c.env.Helper()
	ctx, cancel := c.env.call()
	defer cancel()
	err := c.store.Unknown(ctx, store.UnknownRequest{ID: c.id, Owner: c.owner, Reason: reason})
	c.checkError("unknown", err, reason)
	return err
}
