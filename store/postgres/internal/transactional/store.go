// Package transactional is the store that runs each attempt in one transaction, which
// commits together with the response or not at all.
package transactional

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/slots"
	"github.com/reprise-go/reprise/store/internal/upkeep"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
)

// spareConns is how many connections of the pool attempts never take. They answer
// duplicates, and find out the result of a COMMIT.
const spareConns = 2

// Store is the transactional store over a table.
type Store struct {
	table      *table.Table
	statements statements
	slots      slots.Slots
	recent     table.ReplayRatio
	unused     upkeep.Minutely // attempts whose handlers did not ask for their transactions

	// noClientCheck says that the server cannot check that a client is still connected while
	// it runs a statement, because its operating system does not support that.
	noClientCheck atomic.Bool

	mu        sync.Mutex
	attempts  map[store.Owner]*attempt   // attempts whose end has not begun
	running   map[store.ID]*attempt      // attempts whose transaction is open
	claiming  map[store.ID]chan struct{} // claims on their way; closed at their end
	undecided map[store.Owner]time.Time  // owners whose last call has no definite answer, and since when
}

// New returns the transactional store over t, or an ErrInvalid where the pool of t
// has too few connections, or no limit.
func New(t *table.Table) (*Store, error) {
	switch limit := t.Db.Use().Limit; {
	case limit == 0:
		return nil, table.Invalid("the *sql.DB has no limit on connections; call SetMaxOpenConns with 10 or more")
	case limit <= spareConns:
		return nil, table.Invalid("the pool has %d connections; the transactional store needs at least %d, and should have 10 or more", limit, spareConns+1)
	default:
		return &Store{
			table:      t,
			statements: newStatements(&t.Names, t.Options.Isolation),
			slots:      slots.Slots{Limit: limit - spareConns},
			attempts:   make(map[store.Owner]*attempt),
			running:    make(map[store.ID]*attempt),
			claiming:   make(map[store.ID]chan struct{}),
			undecided:  make(map[store.Owner]time.Time),
		}, nil
	}
}

// Stats returns how many attempts run, and how many claims wait for one of them to end.
func (s *Store) Stats() slots.Stats { return s.slots.Stats() }

// Claim implements [store.Store]: see reprisepg.TransactionalStore.Claim.
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return store.ClaimResult{}, err
	}
	result, done, err := s.enterClaim(ctx, r)
	if done || err != nil {
		return result, err
	}
	defer s.leaveClaim(r.ID)
	result, err = s.claim(ctx, r)
	if err == nil {
		s.count(result)
	}
	return result, err
}

// Renew implements [store.Store]. An attempt of this store needs no renewal and is
// answered Renewed while it runs here; leased records in the same table are renewed.
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	statuses, err := s.table.Renew(ctx, rs)
	for i := range statuses {
		if s.find(rs[i].ID, rs[i].Owner) != nil {
			statuses[i] = store.Renewed
		}
	}
	return statuses, err
}

// Complete implements [store.Store]: see reprisepg.TransactionalStore.Complete.
func (s *Store) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	a := s.take(r.ID, r.Owner)
	if a == nil {
		if s.isUndecided(r.Owner) {
			return s.findCommit(ctx, r.ID, r.Owner, r.Owner[:])
		}
		return s.table.Complete(ctx, &r)
	}
	return s.finish(ctx, a, ending{CompleteRequest: r})
}

// finish commits the ending of an attempt. If the answer is lost, it finds out whether
// the commit was executed.
func (s *Store) finish(ctx context.Context, a *attempt, r ending) error {
	s.setUndecided(r.Owner)
	err := s.commitAndEnd(ctx, a, &r)
	if !r.DiscardEffects {
		s.reportUnused(ctx, a)
	}
	if errors.Is(err, store.ErrUnknown) && ctx.Err() == nil {
		return s.findCommit(ctx, r.ID, r.Owner, r.owner())
	}
	if !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrNotReplicated) {
		s.setDecided(r.Owner)
	}
	return err
}

// commitAndEnd commits, and then returns the connection and the slot, even if a tracer of
// the application panics.
func (s *Store) commitAndEnd(ctx context.Context, a *attempt, r *ending) error {
	defer s.end(a)
	err := s.commit(ctx, a, r)
	if err != nil {
		_ = a.rollback(ctx) // frees the lock before the answer is sent
		if r.reason != "" {
			a.hangUp(ctx) // the session may hold the lock twice
		}
	}
	return err
}

// Release implements [store.Store]: it rolls the transaction of the attempt back.
func (s *Store) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	a := s.take(id, owner)
	if a == nil {
		s.setDecided(owner) // its claim had no answer, and ended with its connection
		return nil
	}
	defer s.end(a)
	return a.rollback(ctx)
}

// Bind implements [store.ContextBinder]: it makes the transaction of the attempt
// available to [Tx] and [SQLTx].
func (s *Store) Bind(ctx context.Context, id store.ID, owner store.Owner) context.Context {
	if a := s.find(id, owner); a != nil {
		a.bound.Store(true)
		return context.WithValue(ctx, txKey{}, a)
	}
	return ctx
}

// lockKey names the lock of an attempt. Advisory locks belong to the whole database, so
// the table is part of it.
func (s *Store) lockKey(id store.ID) int64 {
	sum := sha256.Sum256(append([]byte(s.table.Names.Lock+"\x00"), id[:]...))
	return int64(binary.BigEndian.Uint64(sum[:8])) //nolint:gosec // any 64 bits do
}
