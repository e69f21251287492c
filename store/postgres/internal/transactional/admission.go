package transactional

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
)

// This file handles a claim until it gets a transaction.

// claim is [Store.Claim] for a claim that enterClaim let through: the only one of its ID
// that is on its way.
func (s *Store) claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	result, done, err := s.waitForSlot(ctx, r)
	if done || err != nil {
		return result, err
	}
	granted := false
	defer func() { // also when a tracer of the application panics
		if !granted {
			s.slots.Release()
		}
	}()
	var a *attempt
	a, result, err = s.begin(ctx, r, true)
	for range 2 { // the two features that the store can do without: see adapts and NotPrepared
		if errors.Is(err, errAdapted) {
			a, result, err = s.begin(ctx, r, false)
		}
	}
	if errors.Is(err, store.ErrUnknown) {
		s.setUndecided(r.Owner)
	}
	if a == nil {
		return result, err
	}
	granted = true
	a.start()
	s.mu.Lock()
	s.attempts[a.owner] = a
	s.running[a.id] = a
	delete(s.undecided, a.owner)
	s.mu.Unlock()
	return result, nil
}

// enterClaim answers a claim from the memory of this process or, while replays are
// common, from the record. Otherwise it lets the claim through as the only one of its ID,
// so that a storm of duplicates takes one slot. If it returns neither an answer nor an
// error, the caller has to call leaveClaim.
func (s *Store) enterClaim(ctx context.Context, r store.ClaimRequest) (result store.ClaimResult, done bool, err error) {
	look := s.recent.ReplaysCommon()
	for {
		if look {
			result, done, err := s.claimFromRecord(ctx, r)
			if done || err != nil {
				return result, done, err
			}
		}
		s.mu.Lock()
		if a := s.attempts[r.Owner]; a != nil && a.id == r.ID {
			s.mu.Unlock()
			return a.result(), true, nil
		}
		if a := s.running[r.ID]; a != nil && !a.over() {
			s.mu.Unlock()
			if a.fingerprint != r.Fingerprint {
				return store.ClaimResult{Outcome: store.Mismatch}, true, nil
			}
			return store.ClaimResult{Outcome: store.InProgress}, true, nil
		}
		other := s.claiming[r.ID]
		if other == nil {
			s.claiming[r.ID] = make(chan struct{})
			s.mu.Unlock()
			return store.ClaimResult{}, false, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
			look = true // the record may answer this claim, too
		case <-ctx.Done():
			return store.ClaimResult{}, false, fmt.Errorf("%w: postgres: claim: an earlier claim of the same key has no answer yet: %w",
				store.ErrUnavailable, ctx.Err())
		}
	}
}

func (s *Store) leaveClaim(id store.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.claiming[id])
	delete(s.claiming, id)
}

// claimFromRecord answers a claim by a SELECT, without a transaction, if the record alone
// decides.
func (s *Store) claimFromRecord(ctx context.Context, r store.ClaimRequest) (result store.ClaimResult, done bool, err error) {
	var found table.Seen
	err = s.table.On(ctx, "claim", func(conn *pgx.Conn) (err error) {
		found, err = s.table.LookForClaim(ctx, conn, r.ID)
		return err
	})
	if err != nil {
		return store.ClaimResult{}, false, err
	}
	return s.settle(&found, &r)
}

// settle answers a claim if the row that was found allows no attempt.
func (s *Store) settle(found *table.Seen, r *store.ClaimRequest) (result store.ClaimResult, done bool, err error) {
	if found.Standby {
		return store.ClaimResult{}, false, errStandby
	}
	d := found.Decide(r)
	if d.Claimable() {
		return store.ClaimResult{}, false, nil
	}
	result, err = d.AtomicResult("postgres")
	if err == nil {
		s.count(result)
	}
	return result, true, err
}

// count counts a claim, and whether reading the record would have answered it.
func (s *Store) count(result store.ClaimResult) {
	s.recent.Count(result.Outcome == store.Completed || result.Outcome == store.Mismatch)
}
