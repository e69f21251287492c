package memstore_test

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

func TestListPagesThroughEveryRecordOnce(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		const count = 1000
		for n := range count {
			op.id = store.DeriveID("scope", "", time.Duration(n).String())
			mustClaim(t, s, op.claim(), store.Claimed)
		}
		for _, limit := range []int{1, 7, count, store.MaxPage} {
			seen := map[store.ID]int{}
			q := store.Query{Limit: limit}
			for pages := 0; ; pages++ {
				page, err := s.List(t.Context(), q)
				if err != nil || len(page.Records) > limit || page.Total != count || pages > 2*count {
					t.Fatalf("limit %d: page %d has %d records, total %d, %v", limit, pages, len(page.Records), page.Total, err)
				}
				for _, r := range page.Records {
					seen[r.ID]++
				}
				if q.After = page.Next; q.After == "" {
					break
				}
			}
			for id, times := range seen {
				if times != 1 {
					t.Fatalf("limit %d: %s is listed %d times", limit, id.Short(), times)
				}
			}
			if len(seen) != count {
				t.Errorf("limit %d: %d records are listed, want %d", limit, len(seen), count)
			}
		}
	})
}

// One lapsed record among many is found, and each step reads a part of them only.
func TestListGoesInBoundedSteps(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		const count = 60_000
		op.id = store.DeriveID("scope", "", "stuck")
		stuck := op.id
		mustClaim(t, s, op.claim(), store.Claimed)
		time.Sleep(lease)
		for n := range count {
			op.id = store.DeriveID("scope", "", time.Duration(n).String())
			mustClaim(t, s, op.claim(), store.Claimed)
			mustComplete(t, s, op.complete("answer"))
		}
		q := store.Query{States: store.States(store.StateLapsed), Limit: 100}
		var found []store.ID
		for steps := 1; ; steps++ {
			page, err := s.List(t.Context(), q)
			if err != nil || page.Scanned > 12_000 || page.Total != count+1 || steps > 20 {
				t.Fatalf("step %d looked at %d records of %d, %v", steps, page.Scanned, page.Total, err)
			}
			for _, r := range page.Records {
				found = append(found, r.ID)
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		if len(found) != 1 || found[0] != stuck {
			t.Errorf("found %v", found)
		}
	})
}

func TestListSelects(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		claimed := func(n int, label string) store.ID {
			op.id = store.ID(numbered(n))
			r := op.claim()
			r.Label = label
			mustClaim(t, s, r, store.Claimed)
			return op.id
		}
		lapsed := claimed(1, "payments")
		time.Sleep(lease)
		running := claimed(2, "payments")
		completed := claimed(3, "orders")
		mustComplete(t, s, op.complete("answer"))

		for what, c := range map[string]struct {
			q    store.Query
			want []store.ID
		}{
			"lapsed":    {store.Query{States: store.States(store.StateLapsed)}, []store.ID{lapsed}},
			"running":   {store.Query{States: store.States(store.StateRunning)}, []store.ID{running}},
			"completed": {store.Query{States: store.States(store.StateCompleted)}, []store.ID{completed}},
			"two":       {store.Query{States: store.States(store.StateCompleted, store.StateLapsed)}, []store.ID{lapsed, completed}},
			"label":     {store.Query{Label: "orders"}, []store.ID{completed}},
			"older":     {store.Query{OlderThan: lease}, []store.ID{lapsed}},
		} {
			c.q.Limit = 10
			page, err := s.List(t.Context(), c.q)
			if err != nil || page.Next != "" || len(page.Records) != len(c.want) {
				t.Errorf("%s: listed %+v, %v; want %d records", what, page, err, len(c.want))
				continue
			}
			for i, r := range page.Records { // shards are in the order of the first byte of the ID
				if r.ID != c.want[i] {
					t.Errorf("%s: record %d is %s", what, i, r.ID.Short())
				}
			}
		}
	})
}
