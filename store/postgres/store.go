package reprisepg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/core/store"
)

// Store is the leased store: every claim is a statement that commits at once, and holds
// for its lease. It is safe for concurrent use, starts no goroutine and needs no Close;
// the pool stays the caller's.
//
// Besides [reprise.Store] it is a [store.Checker], a [store.ContextBinder] (see
// [InTx]), a [store.Inspector] and a [store.Purger].
type Store struct {
	records
	recent recent                      // how many of the claims are replays
	queue  *batching.Queue[queuedCall] // of claims and completions; nil: they are not combined
	active atomic.Int64                // claims and completions on their way
	few    int64                       // how many of them are sent by themselves

	completing completing
}

var (
	_ store.Store         = (*Store)(nil)
	_ store.ContextBinder = (*Store)(nil)
	_ store.Checker       = (*Store)(nil)
	_ store.Inspector     = (*Store)(nil)
	_ store.Purger        = (*Store)(nil)
)

// New returns the leased store over pool. It asks nothing of the server: [Open] does.
// The tables must exist: see [Migrate]. The error wraps ErrInvalid.
func New(pool *pgxpool.Pool, c Config) (*Store, error) {
	return newStore(database{pool: pool}, c)
}

// NewSQL is [New] for a *sql.DB over pgx's driver (github.com/jackc/pgx/v5/stdlib).
// With another driver every call fails with ErrMisconfigured.
func NewSQL(db *sql.DB, c Config) (*Store, error) {
	return newStore(database{sql: db}, c)
}

// OpenSQL is [Open] for a *sql.DB: see [NewSQL].
func OpenSQL(ctx context.Context, db *sql.DB, c Config) (*Store, error) {
	s, err := NewSQL(db, c)
	if err != nil {
		return nil, err
	}
	if err := refuseUnsafe(ctx, s, s.config.Logger); err != nil {
		return nil, err
	}
	return s, nil
}

func newStore(db database, c Config) (*Store, error) {
	r, err := newRecords(db, c)
	if err != nil {
		return nil, err
	}
	s := &Store{records: r}
	s.queue = newQueue(s)
	return s, nil
}

// Open is [New], and then a [Store.Check] that refuses, with ErrMisconfigured, a server
// on which a guarantee does not hold: one without the tables, for example. Warnings go
// to [Config.Logger].
func Open(ctx context.Context, pool *pgxpool.Pool, c Config) (*Store, error) {
	s, err := New(pool, c)
	if err != nil {
		return nil, err
	}
	if err := refuseUnsafe(ctx, s, s.config.Logger); err != nil {
		return nil, err
	}
	return s, nil
}

// Claim implements [reprise.Store] in one statement that reads before it writes: a replay
// writes nothing. A lapsed record whose row another transaction is just writing is
// InProgress, with a millisecond remaining. Claims that arrive while others are on their
// way are sent together: see [Config.NoCombining].
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return store.ClaimResult{}, err
	}
	if s.queue == nil {
		return s.claimAlone(ctx, &r)
	}
	return s.claimCombined(ctx, &r)
}

// Renew implements [reprise.Store] in one statement for the whole batch.
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	return s.renew(ctx, rs)
}

// Complete implements [reprise.Store] in one statement, with other calls as Claim is.
func (s *Store) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	elsewhere, err := s.completedElsewhere(ctx, &r)
	switch {
	case err != nil:
		return err
	case elsewhere:
		return fmt.Errorf("%w: postgres: complete: the handler completed the record with another response, in a transaction of its own", store.ErrLeaseLost)
	}
	if s.queue == nil {
		err = s.complete(ctx, &r)
	} else {
		err = s.completeCombined(ctx, &r)
	}
	if err == nil || errors.Is(err, store.ErrLeaseLost) {
		s.completing.forget(r.Owner)
	}
	return err
}

// Release implements [reprise.Store] in one statement.
func (s *Store) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	s.completing.forget(owner)
	return s.run(ctx, "release", s.sql.release, func(rows pgx.Rows) error {
		readable := true // also where there is no record
		if rows.Next() {
			if err := rows.Scan(&readable); err != nil {
				return err
			}
		}
		if !readable {
			return corrupt("release")
		}
		return nil
	}, id[:], owner[:])
}
