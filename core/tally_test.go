package reprise_test

import (
	"strconv"
	"sync"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
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
