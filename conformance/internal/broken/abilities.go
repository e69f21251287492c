package broken

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-go/reprise/core/store"
)

// Watch implements [store.Waiter].
func (s *Store) Watch(_ context.Context, id store.ID) (changed <-chan struct{}, stop func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan struct{}, 1)
	s.watches[id] = append(s.watches[id], ch)
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watches[id] = slices.DeleteFunc(s.watches[id], func(other chan struct{}) bool {
			return other == ch || s.has(watchStopsAll)
		})
	}, nil
}

func (s *Store) changed(id store.ID) {
	for _, ch := range s.watches[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// Purge implements [store.Purger].
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	if err := s.enterWithLimit(ctx, limit, 100_000); err != nil && !s.has(purgeAnyLimit) {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var dead []store.ID
	for id, rec := range s.records {
		isDead := !s.seen(rec, now)
		if s.has(purgeLiveLease) {
			isDead = !now.Before(rec.valid)
		}
		if s.has(purgeExpired) && rec.completed {
			isDead = !now.Before(rec.replayed)
		}
		if isDead && len(dead) < limit && !s.has(purgeNothing) {
			dead = append(dead, id)
		}
	}
	s.linger(purgeNotAtomic)
	for _, id := range dead {
		delete(s.records, id)
	}
	return len(dead), nil
}

func (s *Store) enterWithLimit(ctx context.Context, limit, most int) error {
	if limit < 1 || limit > most {
		return fmt.Errorf("%w: limit is %d, want 1 to %d", store.ErrInvalid, limit, most)
	}
	return s.enter(ctx)
}

// Bind implements [store.ContextBinder].
func (s *Store) Bind(ctx context.Context, _ store.ID, _ store.Owner) context.Context {
	if s.has(bindLosesContext) {
		return context.Background()
	}
	return ctx
}

// Atomic implements [store.ContextBinder].
func (s *Store) Atomic() bool { return s.has(promisesAtomicity) }

// Leased implements [store.Leaser].
func (s *Store) Leased() store.Store {
	if s.has(leasedElsewhere) {
		return New("").Open()
	}
	return s
}

// Check implements [store.Checker].
func (s *Store) Check(ctx context.Context) ([]store.Finding, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	finding := store.Finding{Code: "not-for-use", Severity: store.Unsafe, Detail: "this store is for tests of the suite"}
	if s.has(findingsWithoutDetails) {
		finding.Detail = ""
	}
	return []store.Finding{finding}, nil
}
