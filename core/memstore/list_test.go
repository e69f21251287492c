package memstore_test

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

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
