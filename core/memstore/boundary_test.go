package memstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// inShard is an operation whose record is in a shard, the nth there.
func inShard(shard, n int) operation {
	op := newOperation()
	op.id = store.ID(numbered(n))
	op.id[0] = byte(shard)
	return op
}

const lastShard = 63

// The payload is gone when its retention ends, from every place that had it; the rest of
// the record stays until the horizon ends.
func TestPayloadEndsWithItsRetention(t *testing.T) {
	const horizon = 24 * time.Hour
	for name, reach := range map[string]func(*testing.T, *memstore.Store, operation){
		"at a claim": func(t *testing.T, s *memstore.Store, op operation) { mustClaim(t, s, op.claim(), store.Expired) },
		"at an inspection": func(t *testing.T, s *memstore.Store, op operation) {
			if view, err := s.Inspect(t.Context(), op.id); err != nil || view.State != store.StateExpired || view.Payload != nil || view.Size != 0 || view.Validity != horizon {
				t.Errorf("shows %+v, %v", view, err)
			}
		},
		"at a purge": func(t *testing.T, s *memstore.Store, _ operation) {
			if purged, err := s.Purge(t.Context(), 10); purged != 1 || err != nil {
				t.Errorf("purged %d, %v; want the payload", purged, err)
			}
		},
		"at the claim of another key": func(t *testing.T, s *memstore.Store, op operation) {
			other := inShard(int(op.id[0]%64), 1)
			other.id[1] = op.id[1] + 1
			mustClaim(t, s, other.claim(), store.Claimed)
			wantError(t, "release", s.Release(t.Context(), other.id, other.owner), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T) {
				s, op := memstore.New(), newOperation()
				mustClaim(t, s, op.claim(), store.Claimed)
				time.Sleep(time.Second) // the retention counts from the completion
				request := op.complete(strings.Repeat("answer", 1000))
				request.Horizon = horizon
				mustComplete(t, s, request)
				time.Sleep(retention - 1)
				mustClaim(t, s, op.claim(), store.Completed)
				time.Sleep(time.Nanosecond)
				reach(t, s, op)
				if got := s.Usage(); got[0].Used != 1 || got[1].Used != 400 {
					t.Errorf("%+v are left, want one record without its payload", got)
				}
				mustClaim(t, s, op.claim(), store.Expired)
				time.Sleep(horizon - 1)
				mustClaim(t, s, op.claim(), store.Expired)
				time.Sleep(time.Nanosecond)
				mustClaim(t, s, op.claim(), store.Claimed)
			})
		})
	}
}

// A page that the last record fills is the last page, and one that is not full goes on to
// the end of its shard.
func TestListEndsWithItsLastRecord(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s := memstore.New()
		for n := range 2 {
			mustClaim(t, s, inShard(lastShard, n).claim(), store.Claimed)
		}
		for _, limit := range []int{2, 5} {
			page, err := s.List(t.Context(), store.Query{Limit: limit})
			if err != nil || len(page.Records) != 2 || page.Next != "" || page.Scanned != 2 {
				t.Errorf("limit %d: %d of %d records, next %q, %v", limit, len(page.Records), page.Scanned, page.Next, err)
			}
		}
	})
}

// A modified cursor of the same store is refused as well.
func TestListRefusesACursorThatWasChanged(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s := memstore.New()
		for n := range 2 {
			mustClaim(t, s, inShard(lastShard, n).claim(), store.Claimed)
		}
		page, err := s.List(t.Context(), store.Query{Limit: 1})
		parts := strings.Split(page.Next, "-")
		if err != nil || len(parts) != 4 {
			t.Fatalf("next %q, %v", page.Next, err)
		}
		with := func(part int, text string) string {
			changed := append([]string(nil), parts...)
			changed[part] = text
			return strings.Join(changed, "-")
		}
		if page, err := s.List(t.Context(), store.Query{Limit: 1, After: with(2, "0")}); err != nil || len(page.Records) != 1 {
			t.Errorf("another shard: %d records, %v", len(page.Records), err)
		}
		for _, cursor := range []string{
			with(0, "memorx"), with(1, "1"), with(2, ""), with(2, "x"), with(2, "64"), with(2, "99999999999999999999"), with(3, "zz"),
			page.Next + "-", strings.Join(parts[:3], "-"),
		} {
			_, err := s.List(t.Context(), store.Query{Limit: 1, After: cursor})
			wantError(t, cursor, err, store.ErrInvalid)
		}
	})
}

func TestTheClockNeverGoesBack(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		mustClaim(t, s, op.claim(), store.Claimed)
		s.Advance(0)
		mustClaim(t, s, op.by(store.NewOwner()).claim(), store.InProgress)
		s.Advance(lease)
		mustClaim(t, s, op.by(store.NewOwner()).claim(), store.Claimed)
		defer func() {
			if recover() == nil {
				t.Error("the clock goes backwards")
			}
		}()
		s.Advance(-1)
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
