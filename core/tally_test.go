package reprise_test

import (
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

func TestStatsCountByLabel(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		orders, refunds := order("k"), order("r")
		orders.Label, refunds.Label = "orders", "refunds"
		a := b.claim(t, orders)
		b.want(t, orders, reprise.InProgress)
		complete(t, a, "answer", reprise.EndRecorded)
		b.want(t, orders, reprise.Replayed)
		running := b.claim(t, refunds)
		b.Refuse(t.Context(), "refunds", reprise.KeyMissing, nil)

		s := b.Stats()
		for label, want := range map[string]map[reprise.Outcome]uint64{
			"orders":  {reprise.Claimed: 1, reprise.InProgress: 1, reprise.Replayed: 1},
			"refunds": {reprise.Claimed: 1, reprise.KeyMissing: 1},
		} {
			got := s.Labels[label].Outcomes
			if len(got) != len(reprise.Outcomes()) {
				t.Errorf("%s has %d outcomes, want every one", label, len(got))
			}
			for _, o := range reprise.Outcomes() {
				if got[o] != want[o] {
					t.Errorf("%s: %v is counted %d times, want %d", label, o, got[o], want[o])
				}
			}
		}
		if s.Outcomes[reprise.Claimed] != 2 || s.Ends[reprise.EndRecorded] != 1 || len(s.Ends) != len(reprise.AttemptEnds()) {
			t.Errorf("in all %v, %v", s.Outcomes, s.Ends)
		}
		if s.Running != 1 || s.Leases != 1 || s.Labels["refunds"].Running != 1 || s.Labels["orders"].Running != 0 {
			t.Errorf("%+v", s)
		}
		release(t, running)
	})
}

// An attempt that no lease is kept for runs, and has none.
func TestAttemptsWithoutALeaseAreNotCountedAsLeases(t *testing.T) {
	inTime(t, func(t *testing.T) {
		opened, atomic := setup(t, reprise.Config{}), setupAtomic(t, time.Minute)
		away(opened, store.ErrUnavailable)
		for b, a := range map[*bench]*reprise.Attempt{opened: opened.unprotected(t, order("k")), atomic: atomic.claim(t, order("k"))} {
			if s := b.Stats(); s.Running != 1 || s.Leases != 0 {
				t.Errorf("%d run with %d leases, want 1 and 0", s.Running, s.Leases)
			}
			release(t, a)
		}
	})
}

// Labels that never end, such as one for each request, do not fill the memory.
func TestLabelsAreBounded(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var all sync.WaitGroup
		for n := range 1500 {
			all.Go(func() { b.Refuse(t.Context(), "label-"+strconv.Itoa(n), reprise.KeyMissing, nil) })
		}
		all.Wait()
		s := b.Stats()
		if len(s.Labels) != 1001 || s.Labels["(others)"].Outcomes[reprise.KeyMissing] != 500 || s.Outcomes[reprise.KeyMissing] != 1500 {
			t.Errorf("%d labels, of others %v", len(s.Labels), s.Labels["(others)"].Outcomes)
		}
	})
}

// A policy has its counts, and observers their series, before its first request.
func TestDeclaredLabelsAreCountedFromZero(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		for _, label := range []string{"orders", "orders", "caf\u00e9"} {
			b.Declare(label)
		}
		labels := b.Stats().Labels
		if n, ok := labels["orders"].Outcomes[reprise.Lapsed]; len(labels) != 1 || !ok || n != 0 {
			t.Errorf("counted are %v", labels)
		}
		if names := b.events.names(); len(names) != 2 || b.events.list[0].Label != "orders" || names[0] != "declared" {
			t.Errorf("observed are %v", names)
		}
	})
}

// meter is a store with the ability Meter.
type meter struct {
	store.Store
	usage func() []store.Usage
}

func (m meter) Usage() []store.Usage { return m.usage() }

func TestStatsHaveTheUsageOfTheStore(t *testing.T) {
	inTime(t, func(t *testing.T) {
		e := newEngine(t, memstore.New(), nil, reprise.Config{Log: slog.New(slog.DiscardHandler)})
		res := must(e.Begin(t.Context(), order("k")))
		if u := e.Stats().Store; len(u) != 2 || u[0].Name != "records" || u[0].Used != 1 || u[0].Limit != memstore.DefaultRecords {
			t.Errorf("%+v", u)
		}
		release(t, res.Attempt)
		bad := newEngine(t, meter{memstore.New(), func() []store.Usage { panic("a bug") }}, nil, reprise.Config{Log: slog.New(slog.DiscardHandler)})
		if u := bad.Stats().Store; u != nil {
			t.Errorf("%+v", u)
		}
		if u := setup(t, reprise.Config{}).Stats().Store; u != nil {
			t.Errorf("a store that says nothing uses %+v", u)
		}
	})
}

func TestOutcomesAndEndsHaveNames(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, o := range reprise.Outcomes() {
		names["outcome "+o.String()] = true
	}
	for _, e := range reprise.AttemptEnds() {
		names["end "+e.String()] = true
	}
	if len(names) != 15+9 || names["outcome "] || names["end "] {
		t.Errorf("%v", names)
	}
	if reprise.Outcome(0).String() != "invalid(0)" || reprise.AttemptEnd(10).String() != "invalid(10)" {
		t.Error("what is not in the table has a name")
	}
}
