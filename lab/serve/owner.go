package serve

import (
	"context"
	"sync"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// ownerStore is a store that remembers the owners of the attempts that it granted. Only
// the store and its engine know them otherwise; a test compares the owner of an effect
// with that of the record.
type ownerStore struct{ store.Store }

// Unwrap makes it a decorator.
func (s *ownerStore) Unwrap() store.Store { return s.Store }

// owners has the owner of each attempt of this process, by what its handler knows of it.
var owners sync.Map // store.Owner by attemptKey

type attemptKey struct {
	id    store.ID
	fence uint64
}

// Claim implements [store.Store].
func (s *ownerStore) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	got, err := s.Store.Claim(ctx, r)
	if err == nil && got.Outcome == store.Claimed {
		owners.Store(attemptKey{r.ID, got.Fence}, r.Owner)
	}
	return got, err
}

// Complete implements [store.Store]: no handler asks for the owner any more.
func (s *ownerStore) Complete(ctx context.Context, r store.CompleteRequest) error {
	owners.Delete(attemptKey{r.ID, r.Fence})
	return s.Store.Complete(ctx, r)
}

// ownerFrom returns the owner of the attempt that ctx belongs to, nil outside of one.
func ownerFrom(ctx context.Context) []byte {
	view, _ := reprise.AttemptFrom(ctx)
	owner, ok := owners.Load(attemptKey{view.ID(), view.Fence()})
	if !ok {
		return nil
	}
	id := owner.(store.Owner) //nolint:forcetypeassert // only Claim stores
	return id[:]
}
