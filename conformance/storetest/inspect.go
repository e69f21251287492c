package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/reprise-go/reprise/conformance"

	reprise "github.com/reprise-go/reprise/core"
)

var inspectCases = []testCase{
	{
		conformance.Case{
			ID:     "inspect-nothing",
			Rule:   "To inspect what was never claimed, or whose retention ended, is ErrNotFound.",
			Source: "Inspector.Inspect",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(r *rig) {
			first := r.party()
			first.wantNotFound()
			first.anew()
			first.retention = r.short()
			first.complete("answer")
			r.advance(first.retention)
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
		func(r *rig) {
			first := r.party()
			granted := first.anew()
			first.retention = long / 2
			first.complete("answer")
			got := first.inspect()
			if got.ID != first.id || !got.Completed || string(got.Payload) != "answer" || got.Attempt != 1 || got.Lease != 0 {
				r.Errorf("inspected %+v", got)
			}
			if !r.fixture.Atomic && got.Fence != granted.Fence {
				r.Errorf("fence %d, want %d", got.Fence, granted.Fence)
			}
			r.between("the validity", got.Validity, long/4, long/2)
		},
	},
	{
		conformance.Case{
			ID:     "inspect-in-progress",
			Rule:   "Inspecting an attempt shows what remains of its lease and of its validity, negative once it lapsed, and no payload.",
			Source: "Inspector.Inspect, Record",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(r *rig) {
			first := r.party()
			first.lease = long / 2
			granted := first.anew()
			got := first.inspect()
			if got.ID != first.id || got.Completed || got.Payload != nil || got.Attempt != 1 || got.Fence != granted.Fence {
				r.Errorf("inspected %+v after %+v", got, granted)
			}
			r.between("the lease", got.Lease, long/4, long/2)
			r.between("the validity", got.Validity, 3*long/4, long)

			lapsed, _ := r.lapsed()
			got = lapsed.inspect()
			if got.Completed {
				r.Errorf("inspected %+v of a lapsed attempt", got)
			}
			r.between("the lapsed lease", got.Lease, -long, 0)
		},
	},
	{
		conformance.Case{
			ID:     "list",
			Rule:   "A listing shows the records that are seen, without payloads, up to its limit.",
			Source: "Inspector.List",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(r *rig) {
			gone, done := r.party(), r.party()
			brief := gone
			brief.retention = r.short()
			brief.anew()
			brief.complete("gone")
			r.advance(brief.retention)
			done.anew()
			done.complete("answer")
			other := r.party()
			other.anew()
			other.complete("answer")

			all := r.list(10_000)
			if i := slices.IndexFunc(all, func(rec reprise.Record) bool { return rec.ID == done.id }); i < 0 {
				r.Errorf("a completed record is missing from %d in the listing", len(all))
			} else if !all[i].Completed || all[i].Payload != nil || all[i].Validity <= 0 {
				r.Errorf("listed %+v", all[i])
			}
			if slices.ContainsFunc(all, func(rec reprise.Record) bool { return rec.ID == gone.id }) {
				r.Error("a record past its retention is in the listing")
			}
			if got := r.list(1); len(got) != 1 {
				r.Errorf("%d records in a listing of at most 1, while there are at least 2", len(got))
			}
			ctx, cancel := r.call()
			defer cancel()
			for _, limit := range []int{-1, 0, 10_001} {
				_, err := ability[reprise.Inspector](r.one).List(ctx, limit)
				r.wantInvalid("list", err)
			}
		},
	},
	{
		conformance.Case{
			ID:     "resolve-keep",
			Rule:   "An operator who knows the outcome of a lapsed attempt keeps it as the answer, for the retention that the operator gives.",
			Source: "Inspector.Resolve, Resolution",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(r *rig) {
			first, granted := r.lapsed()
			if err := first.resolve(reprise.Resolution{Fence: granted.Fence, Payload: []byte("by hand"), Retention: long / 2}); err != nil {
				r.Fatalf("resolve: %v, want success", err)
			}
			first.rival().replay("by hand")
			first.stranger().claim(reprise.Mismatch)
			r.between("the validity", first.inspect().Validity, long/4, long/2)
		},
	},
	{
		conformance.Case{
			ID:     "resolve-forget",
			Rule:   "An operator who knows that a lapsed attempt had no effect forgets it: the key is new.",
			Source: "Inspector.Resolve, Resolution",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(r *rig) {
			first, granted := r.lapsed()
			if err := first.resolve(reprise.Resolution{Fence: granted.Fence, Forget: true}); err != nil {
				r.Fatalf("resolve: %v, want success", err)
			}
			second := first.stranger()
			if got := second.anew(); got.Fence < granted.Fence {
				r.Errorf("fence %d after %d", got.Fence, granted.Fence)
			}
		},
	},
	{
		conformance.Case{
			ID:     "resolve-owner",
			Rule:   "After an operator resolved an attempt its former owner is told that it lost it, and changes nothing.",
			Source: "Inspector.Resolve, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(r *rig) {
			first, granted := r.lapsed()
			if err := first.resolve(reprise.Resolution{Fence: granted.Fence, Payload: []byte("by hand"), Retention: long}); err != nil {
				r.Fatalf("resolve: %v, want success", err)
			}
			first.completeLost("of the former owner")
			first.renew(reprise.RenewLost)
			first.release()
			first.replay("by hand")
		},
	},
	{
		conformance.Case{
			ID:     "resolve-changed",
			Rule:   "What is live, completed, gone, or has another fence than the operator looked at is not resolved: ErrRecordChanged.",
			Source: "Inspector.Resolve",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(r *rig) {
			for _, resolution := range []reprise.Resolution{{Forget: true}, {Payload: []byte("by hand"), Retention: long}} {
				gone := r.party()
				gone.wantChanged("an ID that was never claimed", resolution)

				live := r.party()
				resolution.Fence = live.anew().Fence
				live.wantChanged("a live attempt", resolution)
				live.rival().claim(reprise.InProgress)
				live.complete("answer")
				live.wantChanged("a completed record", resolution)
				live.rival().replay("answer")

				lapsed, granted := r.lapsed()
				resolution.Fence = granted.Fence + 1
				lapsed.wantChanged("another fence", resolution)
				careful := lapsed.rival()
				careful.takeover = false
				careful.claim(reprise.Lapsed)

				next := lapsed.rival()
				next.lease = r.short()
				next.claim(reprise.Claimed)
				r.advance(next.lease)
				resolution.Fence = granted.Fence
				lapsed.wantChanged("the fence of an earlier attempt", resolution)
				careful.claim(reprise.Lapsed)
			}
		},
	},
}

func (p party) inspect() reprise.Record {
	p.rig.Helper()
	got, err := p.tryInspect()
	if err != nil {
		p.rig.Fatalf("inspect: %v, want a record", err)
	}
	return got
}

func (p party) wantNotFound() {
	p.rig.Helper()
	if got, err := p.tryInspect(); !errors.Is(err, reprise.ErrNotFound) {
		p.rig.Fatalf("inspect: %+v, %v; want ErrNotFound", got, err)
	}
}

func (p party) tryInspect() (reprise.Record, error) {
	p.rig.Helper()
	ctx, cancel := p.rig.call()
	defer cancel()
	got, err := ability[reprise.Inspector](p.rig.two).Inspect(ctx, p.id)
	p.checkError("inspect", err)
	return got, err
}

func (r *rig) list(limit int) []reprise.Record {
	r.Helper()
	ctx, cancel := r.call()
	defer cancel()
	got, err := ability[reprise.Inspector](r.two).List(ctx, limit)
	r.checkError("list", err)
	if err != nil {
		r.Fatalf("list: %v, want success", err)
	}
	if len(got) > limit {
		r.Fatalf("%d records in a listing of at most %d", len(got), limit)
	}
	return got
}

func (p party) resolve(resolution reprise.Resolution) error {
	p.rig.Helper()
	ctx, cancel := p.rig.call()
	defer cancel()
	err := ability[reprise.Inspector](p.rig.two).Resolve(ctx, p.id, resolution)
	p.checkError("resolve", err, string(resolution.Payload))
	return err
}

func (p party) wantChanged(what string, resolution reprise.Resolution) {
	p.rig.Helper()
	if err := p.resolve(resolution); !errors.Is(err, reprise.ErrRecordChanged) {
		p.rig.Fatalf("resolve of %s: error %v, want ErrRecordChanged", what, err)
	}
}

// between demands that a duration is within its bounds.
func (r *rig) between(what string, got, low, high time.Duration) {
	r.Helper()
	if got < low || got > high {
		r.Errorf("%s is %v, want %v to %v", what, got, low, high)
	}
}
