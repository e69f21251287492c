package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

var inspectCases = []testCase{
	{
		conformance.Case{
			ID:     "inspect-nothing",
			Rule:   "Inspecting an ID that was never claimed, or whose retention ended, is ErrNotFound.",
			Source: "Inspector.Inspect",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			first.wantNotFound()
			first.claimNew()
			first.retention = e.short()
			first.complete("answer")
			e.advance(first.retention)
			first.wantNotFound()
		},
	},
	{
		conformance.Case{
			ID:     "inspect-completed",
			Rule:   "Inspecting a completed record shows its payload, its fence, and how long it is replayed.",
			Source: "Inspector.Inspect, Record",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			granted := first.claimNew()
			first.retention = long / 2
			first.complete("answer")
			got := first.inspect()
			if got.ID != first.id || got.State != store.StateCompleted || string(got.Payload) != "answer" || got.Attempt != 1 || got.Lease != 0 {
				e.Errorf("inspected %+v", got)
			}
			if !e.fixture.Atomic && got.Fence != granted.Fence {
				e.Errorf("fence %d, want %d", got.Fence, granted.Fence)
			}
			e.between("the validity", got.Validity, long/4, long/2)
		},
	},
	{
		conformance.Case{
			ID:     "inspect-in-progress",
			Rule:   "Inspecting an attempt shows what remains of its lease and of its validity, negative once it lapsed, and no payload.",
			Source: "Inspector.Inspect, Record",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			first.lease = long / 2
			granted := first.claimNew()
			got := first.inspect()
			if got.ID != first.id || got.State != store.StateRunning || got.Payload != nil || got.Attempt != 1 || got.Fence != granted.Fence {
				e.Errorf("inspected %+v after %+v", got, granted)
			}
			e.between("the lease", got.Lease, long/4, long/2)
			e.between("the validity", got.Validity, 3*long/4, long)

			lapsed, _ := e.lapsed()
			got = lapsed.inspect()
			if got.State != store.StateLapsed {
				e.Errorf("inspected %+v of a lapsed attempt", got)
			}
			e.between("the lapsed lease", got.Lease, -long, 0)
		},
	},
	{
		conformance.Case{
			ID:     "inspect-live-beyond-retention",
			Rule:   "A live attempt that outlived its retention is seen until its lease ends, and its validity says so.",
			Source: "Record.Validity; Store, Records",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			first.retention = e.short()
			first.claimNew()
			e.advance(2 * first.retention)
			got := first.inspect()
			e.between("the lease", got.Lease, long/2, long)
			e.between("the validity", got.Validity, got.Lease, long)
		},
	},
	{
		conformance.Case{
			ID:     "list",
			Rule:   "A listing shows the records that are seen, without payloads, up to its limit.",
			Source: "Inspector.List",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			gone, done := e.caller(), e.caller()
			brief := gone
			brief.retention = e.short()
			brief.claimNew()
			brief.complete("gone")
			e.advance(brief.retention)
			done.claimNew()
			done.complete("answer")
			other := e.caller()
			other.claimNew()
			other.complete("answer")

			all := e.listAll(store.Query{Limit: store.MaxPage})
			if i := slices.IndexFunc(all, func(rec store.Record) bool { return rec.ID == done.id }); i < 0 {
				e.Errorf("a completed record is missing from %d in the listing", len(all))
			} else if all[i].State != store.StateCompleted || all[i].Payload != nil || all[i].Validity <= 0 {
				e.Errorf("listed %+v", all[i])
			}
			if slices.ContainsFunc(all, func(rec store.Record) bool { return rec.ID == gone.id }) {
				e.Error("a record past its retention is in the listing")
			}
			e.wantIDs("in pages of one", e.listAll(store.Query{Limit: 1}), []store.ID{done.id, other.id})
			ctx, cancel := e.call()
			defer cancel()
			for _, limit := range []int{-1, 0, 10_001} {
				_, err := ability[store.Inspector](e.one).List(ctx, store.Query{Limit: limit})
				e.wantInvalid("list", err)
			}
		},
	},
	{
		conformance.Case{
			ID:     "resolve-keep",
			Rule:   "An operator can complete a lapsed attempt with a payload, for the retention that the operator gives.",
			Source: "Inspector.Resolve, Resolution",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			first, granted := e.lapsed()
			if err := first.resolve(store.Resolution{Fence: granted.Fence, Payload: []byte("by hand"), Retention: 2 * long}); err != nil {
				e.Fatalf("resolve: %v, want success", err)
			}
			first.rival().replay("by hand")
			first.otherRequest().claim(store.Mismatch)
			e.between("the validity", first.inspect().Validity, 3*long/2, 2*long)
		},
	},
	{
		conformance.Case{
			ID:     "resolve-forget",
			Rule:   "An operator can release a lapsed attempt: the ID is then new.",
			Source: "Inspector.Resolve, Resolution",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			first, granted := e.lapsed()
			if err := first.resolve(store.Resolution{Fence: granted.Fence, Forget: true}); err != nil {
				e.Fatalf("resolve: %v, want success", err)
			}
			second := first.otherRequest()
			if got := second.claimNew(); got.Fence < granted.Fence {
				e.Errorf("fence %d after %d", got.Fence, granted.Fence)
			}
		},
	},
	{
		conformance.Case{
			ID:     "resolve-owner",
			Rule:   "After an operator resolved an attempt, its former owner gets ErrLeaseLost and changes nothing.",
			Source: "Inspector.Resolve, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			first, granted := e.lapsed()
			if err := first.resolve(store.Resolution{Fence: granted.Fence, Payload: []byte("by hand"), Retention: long}); err != nil {
				e.Fatalf("resolve: %v, want success", err)
			}
			first.completeLost("of the former owner")
			first.renew(store.RenewLost)
			first.release()
			first.replay("by hand")
		},
	},
	{
		conformance.Case{
			ID:     "resolve-changed",
			Rule:   "A record that is live, completed, gone, or has another fence than the inspected one is not resolved: ErrRecordChanged.",
			Source: "Inspector.Resolve",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			for _, resolution := range []store.Resolution{{Fence: 1, Forget: true}, {Fence: 1, Payload: []byte("by hand"), Retention: long}} {
				gone := e.caller()
				gone.wantChanged("an ID that was never claimed", resolution)

				live := e.caller()
				resolution.Fence = live.claimNew().Fence
				live.wantChanged("a live attempt", resolution)
				live.rival().claim(store.InProgress)
				live.complete("answer")
				live.wantChanged("a completed record", resolution)
				live.rival().replay("answer")

				lapsed, granted := e.lapsed()
				resolution.Fence = granted.Fence + 1
				lapsed.wantChanged("another fence", resolution)
				careful := lapsed.rival()
				careful.takeover = false
				careful.claim(store.Lapsed)

				next := lapsed.rival()
				next.lease = e.short()
				next.claim(store.Claimed)
				e.advance(next.lease)
				resolution.Fence = granted.Fence
				lapsed.wantChanged("the fence of an earlier attempt", resolution)
				careful.claim(store.Lapsed)
			}
		},
	},
}

func (c caller) inspect() store.Record {
	c.env.Helper()
	got, err := c.tryInspect()
	if err != nil {
		c.env.Fatalf("inspect: %v, want a record", err)
	}
	return got
}

func (c caller) wantNotFound() {
	c.env.Helper()
	if got, err := c.tryInspect(); !errors.Is(err, store.ErrNotFound) {
		c.env.Fatalf("inspect: %+v, %v; want ErrNotFound", got, err)
	}
}

func (c caller) tryInspect() (store.Record, error) {
	c.env.Helper()
	ctx, cancel := c.env.call()
	defer cancel()
	got, err := ability[store.Inspector](c.env.two).Inspect(ctx, c.id)
	c.checkError("inspect", err)
	return got, err
}

func (c caller) resolve(resolution store.Resolution) error {
	c.env.Helper()
	ctx, cancel := c.env.call()
	defer cancel()
	err := ability[store.Inspector](c.env.two).Resolve(ctx, c.id, resolution)
	c.checkError("resolve", err, string(resolution.Payload))
	return err
}

func (c caller) wantChanged(what string, resolution store.Resolution) {
	c.env.Helper()
	if err := c.resolve(resolution); !errors.Is(err, store.ErrRecordChanged) {
		c.env.Fatalf("resolve of %s: error %v, want ErrRecordChanged", what, err)
	}
}

// between demands that a duration is within its bounds.
func (e *env) between(what string, got, low, high time.Duration) {
	e.Helper()
	if got < low || got > high {
		e.Errorf("%s is %v, want %v to %v", what, got, low, high)
	}
}
