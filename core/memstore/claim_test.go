package memstore_test

import (
	"context"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

func TestEndedContextChangesNoRecord(t *testing.T) {
	t.Parallel()
	s, op := memstore.New(), newOperation()
	mustClaim(t, s, op.claim(), store.Claimed)
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	other := op
	other.id = store.ID(numbered(2))
	_, err := s.Claim(ended, other.claim())
	wantError(t, "Claim", err, store.ErrUnavailable)
	wantError(t, "Claim", err, context.Canceled)
	_, err = s.Renew(ended, op.renew())
	wantError(t, "Renew", err, store.ErrUnavailable)
	wantError(t, "Complete", s.Complete(ended, op.complete("")), store.ErrUnavailable)
	wantError(t, "Release", s.Release(ended, op.id, op.owner), store.ErrUnavailable)
	_, err = s.Inspect(ended, op.id)
	wantError(t, "Inspect", err, store.ErrUnavailable)
	_, _, err = s.Watch(ended, op.id)
	wantError(t, "Watch", err, store.ErrUnavailable)

	page, err := s.List(t.Context(), store.Query{Limit: 10})
	if list := page.Records; err != nil || len(list) != 1 || list[0].State != store.StateRunning {
		t.Errorf("the store holds %+v, %v; want the one record in progress", page, err)
	}
}
