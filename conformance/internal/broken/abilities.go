package broken

import (
	"context"
	"fmt"
	"slices"

	reprise "github.com/reprise-go/reprise/core"
)

// Watch implements [reprise.Waiter].
func (s *Store) Watch(_ context.Context, id reprise.ID) (changed <-chan struct{}, stop func(), err error) {
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

func (s *Store) changed(id reprise.ID) {
	for _, ch := range s.watches[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// Purge implements [reprise.Purger].
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	if err := s.enterWithLimit(ctx, limit, 100_000); err != nil && !s.has(purgeAnyLimit) {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var dead []reprise.ID
	for id, rec := range s.records {
		isDead := !s.seen(rec, now)
		if s.has(purgeLiveLease) {
			isDead = !now.Before(rec.valid)
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
		return fmt.Errorf("%w: limit is %d, want 1 to %d", reprise.ErrInvalid, limit, most)
	}
	return s.enter(ctx)
}

// Bind implements [reprise.ContextBinder].
func (s *Store) Bind(ctx context.Context, _ reprise.ID, _ reprise.Owner) context.Context {
	if s.has(bindLosesContext) {
		return context.Background()
	}
	return ctx
}

// Check implements [reprise.Checker].
func (s *Store) Check(ctx context.Context) ([]reprise.Finding, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	finding := reprise.Finding{Code: "not-for-use", Severity: reprise.Unsafe, Detail: "this store is for tests of the suite"}
	if s.has(findingsWithoutDetails) {
		finding.Detail = ""
	}
	return []reprise.Finding{finding}, nil
}
