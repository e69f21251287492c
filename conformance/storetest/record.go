package storetest

import (
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// recordCases are about an operator's view of a record.
var recordCases = []testCase{
	{
		conformance.Case{
			ID:     "record-policy",
			Rule:   "A record shows the policy of its claim, also an empty label and one of 32 bytes, until it ends.",
			Source: "Policy, Record",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			for _, label := range []string{"", "payments", `a "b"; \ ~`, strings.Repeat("x", store.MaxLabel)} {
				first := e.caller()
				first.label, first.atMostOnce, first.horizon = label, label != "", time.Duration(len(label))*long
				first.claimNew()
				if !e.fixture.Atomic {
					first.wantPolicy("in progress")
					first.renew(store.Renewed)
					first.wantPolicy("renewed")
				}
				first.complete("answer")
				first.wantPolicy("completed")
			}
		},
	},
	{
		conformance.Case{
			ID:     "record-policy-takeover",
			Rule:   "A record that lapsed, was taken over or was resolved shows the policy of its last claim.",
			Source: "Policy, Record",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			first.label, first.lease = "payments", e.short()
			first.claimNew()
			e.advance(first.lease)
			first.wantPolicy("lapsed")
			second := first.rival()
			second.lease, second.label, second.atMostOnce, second.horizon = e.short(), "refunds", true, long // by a deployment
			granted := second.claim(store.Claimed)
			second.wantPolicy("taken over")
			e.advance(second.lease)
			if err := second.resolve(store.Resolution{Fence: granted.Fence, Payload: []byte("by hand"), Retention: long}); err != nil {
				e.Fatalf("resolve: %v, want success", err)
			}
			second.wantPolicy("resolved")
		},
	},
	{
		conformance.Case{
			ID:     "record-label-refused",
			Rule:   "A label of more than 32 bytes, or with a byte that is not printable US-ASCII, is ErrInvalid, and nothing is written.",
			Source: "MaxLabel, Policy.Validate, Query.Validate",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			for _, label := range []string{strings.Repeat("x", store.MaxLabel+1), "caf\u00e9", "a\nb", "\x00", "\x7f"} {
				first := e.caller()
				first.label = label
				_, err := first.tryClaim()
				e.wantInvalid("claim with an invalid label", err)
				first.wantNotFound()
				ctx, cancel := e.call()
				_, err = ability[store.Inspector](e.one).List(ctx, store.Query{Limit: 1, Label: label})
				cancel()
				e.wantInvalid("list with an invalid label", err)
				first.label = ""
				first.claimNew()
				first.label = label
				e.wantInvalid("complete with an invalid label", first.tryCompleteAs(store.ClaimResult{Attempt: 1, Fence: 1}, "answer"))
				first.release()
			}
		},
	},
	{
		conformance.Case{
			ID:     "record-times",
			Rule:   "A record shows by the store's clock when it was completed and when its last attempt claimed it, which a renewal does not move.",
			Source: "Record.ClaimedAt, Record.CompletedAt",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			var running store.Record
			if !e.fixture.Atomic {
				running = first.inspect()
				e.wantTimes("in progress", running, false)
			}
			e.advance(e.short())
			if !e.fixture.Atomic {
				first.renew(store.Renewed)
				if renewed := first.inspect(); !renewed.ClaimedAt.Equal(running.ClaimedAt) {
					e.Errorf("claimed at %v, and after a renewal at %v", running.ClaimedAt, renewed.ClaimedAt)
				}
			}
			first.complete("answer")
			done := first.inspect()
			e.wantTimes("completed", done, true)
			if !e.fixture.Atomic && !done.ClaimedAt.Equal(running.ClaimedAt) {
				e.Errorf("claimed at %v, and after its completion at %v", running.ClaimedAt, done.ClaimedAt)
			}
			if took := done.CompletedAt.Sub(done.ClaimedAt); !e.fixture.Atomic && took < e.short()*9/10 || took > long {
				e.Errorf("completed %v after it was claimed, want %v or a little more", took, e.short())
			}
			e.advance(e.short())
			first.complete("again")
			if again := first.inspect(); !again.CompletedAt.Equal(done.CompletedAt) {
				e.Errorf("completed at %v, and after a repetition at %v", done.CompletedAt, again.CompletedAt)
			}
		},
	},
	{
		conformance.Case{
			ID:     "record-times-takeover",
			Rule:   "A takeover moves the instant at which a record was claimed.",
			Source: "Record.ClaimedAt",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			first, _ := e.lapsed()
			before := first.inspect()
			second := first.rival()
			second.claim(store.Claimed)
			after := second.inspect()
			e.wantTimes("taken over", after, false)
			if moved := after.ClaimedAt.Sub(before.ClaimedAt); moved < e.short()*9/10 {
				e.Errorf("claimed %v later than the attempt that lapsed, want %v or more", moved, e.short())
			}
		},
	},
	{
		conformance.Case{
			ID:     "record-size",
			Rule:   "A completed record shows the size of its payload, when it is inspected and when it is listed.",
			Source: "Record.Size",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			for _, size := range []int{0, 1, 70_000} {
				first := e.caller()
				first.claimNew()
				first.complete(strings.Repeat("x", size))
				if got := first.inspect(); got.Size != size || len(got.Payload) != size {
					e.Errorf("a payload of %d bytes is shown with size %d, and %d bytes", size, got.Size, len(got.Payload))
				}
				if got := first.listed(); got.Size != size || got.Payload != nil {
					e.Errorf("a payload of %d bytes is listed with size %d, and %d bytes", size, got.Size, len(got.Payload))
				}
			}
		},
	},
	{
		conformance.Case{
			ID:     "record-resolved",
			Rule:   "A record that an operator completed says so, and when; one that its owner completed does not.",
			Source: "Record.Resolved, Inspector.Resolve",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			own := e.caller()
			own.claimNew()
			own.complete("answer")
			if own.inspect().Resolved {
				e.Error("a record that its owner completed says that it was resolved")
			}
			first, granted := e.lapsed()
			if first.inspect().Resolved {
				e.Error("a lapsed record says that it was resolved")
			}
			if err := first.resolve(store.Resolution{Fence: granted.Fence, Payload: []byte("by hand"), Retention: long}); err != nil {
				e.Fatalf("resolve: %v, want success", err)
			}
			for what, got := range map[string]store.Record{"inspected": first.inspect(), "listed": first.listed()} {
				if !got.Resolved || got.State != store.StateCompleted || got.Attempt != 1 || got.Fence != granted.Fence {
					e.Errorf("%s %+v of a record that was resolved", what, got)
				}
				e.wantTimes(what, got, true)
			}
		},
	},
}

func (c caller) wantPolicy(what string) {
	c.env.Helper()
	for how, got := range map[string]store.Record{"inspected": c.inspect(), "listed": c.listed()} {
		if got.Policy != c.policy() {
			c.env.Errorf("the record that is %s is %s with the policy %+v, want %+v", what, how, got.Policy, c.policy())
		}
	}
}

// wantTimes demands the instants that a record has in its state.
func (e *env) wantTimes(what string, r store.Record, completed bool) {
	e.Helper()
	switch {
	case r.ClaimedAt.IsZero():
		e.Errorf("%s: not claimed at any time: %+v", what, r)
	case completed != !r.CompletedAt.IsZero():
		e.Errorf("%s: completed at %v", what, r.CompletedAt)
	case completed && r.CompletedAt.Before(r.ClaimedAt):
		e.Errorf("%s: claimed at %v, completed at %v", what, r.ClaimedAt, r.CompletedAt)
	}
}
