package memstore_test

import (
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

func TestListPagesThroughEveryRecordOnce(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		const count = 1000
		for n := range count {
			op.id = reprise.DeriveID("scope", "", time.Duration(n).String())
			mustClaim(t, s, op.claim(), reprise.Claimed)
		}
		for _, limit := range []int{1, 7, count, reprise.MaxPage} {
			seen := map[reprise.ID]int{}
			q := reprise.Query{Limit: limit}
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

// One lapsed record among many is found, and no step looks at more than a part of them.
func TestListGoesInBoundedSteps(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		const count = 60_000
		op.id = reprise.DeriveID("scope", "", "stuck")
		stuck := op.id
		mustClaim(t, s, op.claim(), reprise.Claimed)
		time.Sleep(lease)
		for n := range count {
			op.id = reprise.DeriveID("scope", "", time.Duration(n).String())
			mustClaim(t, s, op.claim(), reprise.Claimed)
			mustComplete(t, s, op.complete("answer"))
		}
		q := reprise.Query{States: reprise.States(reprise.StateLapsed), Limit: 100}
		var found []reprise.ID
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
		claimed := func(n int, label string) reprise.ID {
			op.id = reprise.ID(numbered(n))
			r := op.claim()
			r.Label = label
			mustClaim(t, s, r, reprise.Claimed)
			return op.id
		}
		lapsed := claimed(1, "payments")
		time.Sleep(lease)
		running := claimed(2, "payments")
		completed := claimed(3, "orders")
		mustComplete(t, s, op.complete("answer"))

		for what, c := range map[string]struct {
			q    reprise.Query
			want []reprise.ID
		}{
			"lapsed":    {reprise.Query{States: reprise.States(reprise.StateLapsed)}, []reprise.ID{lapsed}},
			"running":   {reprise.Query{States: reprise.States(reprise.StateRunning)}, []reprise.ID{running}},
			"completed": {reprise.Query{States: reprise.States(reprise.StateCompleted)}, []reprise.ID{completed}},
			"two":       {reprise.Query{States: reprise.States(reprise.StateCompleted, reprise.StateLapsed)}, []reprise.ID{lapsed, completed}},
			"label":     {reprise.Query{Label: "orders"}, []reprise.ID{completed}},
			"older":     {reprise.Query{OlderThan: lease}, []reprise.ID{lapsed}},
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

func TestListRefusesTheCursorOfAnotherStore(t *testing.T) {
	t.Parallel()
	for _, cursor := range []string{"x", "memory-0-0-", "memory-zz-0-", "redis-1-2-3", "memory-1-99-"} {
		_, err := memstore.New().List(t.Context(), reprise.Query{Limit: 1, After: cursor})
		wantError(t, cursor, err, reprise.ErrInvalid)
	}
}
