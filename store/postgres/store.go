package reprisepg

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	reprise "github.com/reprise-go/reprise/core"
)

// Store is the leased store: every claim is a statement that commits at once, and holds for its lease. It is safe for concurrent
// use, starts no goroutine and needs no Close; the pool stays the caller's.
//
// Besides [reprise.Store] it is a [reprise.Checker], a [reprise.Inspector] and a [reprise.Purger].
type Store struct {
	records
}

var (
	_ reprise.Store     = (*Store)(nil)
	_ reprise.Checker   = (*Store)(nil)
	_ reprise.Inspector = (*Store)(nil)
	_ reprise.Purger    = (*Store)(nil)
)

// New returns the leased store over pool with the default configuration. The tables must exist: see [Migrate]. A pool that
// cannot work makes every call fail with ErrMisconfigured; nothing is asked of the server here.
func New(pool *pgxpool.Pool) *Store {
	t, _ := newRecords(pool, Config{}) // the error is the answer to every call
	return &Store{records: t}
}

// NewWithConfig is [New] with a configuration. The error wraps ErrMisconfigured.
func NewWithConfig(pool *pgxpool.Pool, c Config) (*Store, error) {
	t, err := newRecords(pool, c)
	if err != nil {
		return nil, err
	}
	return &Store{records: t}, nil
}

// Claim implements [reprise.Store] in one statement, a function of the schema that reads before it writes: a replay writes nothing.
func (s *Store) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return reprise.ClaimResult{}, err
	}
	var result reprise.ClaimResult
	err := s.run(ctx, "claim", s.sql.claim, func(rows pgx.Rows) error {
		if !rows.Next() {
			return errLostRace
		}
		var v verdict
		if err := v.scan(rows); err != nil {
			return err
		}
		var err error
		result, err = v.answer()
		return err
	}, r.ID[:], r.Owner[:], r.Fingerprint[:], r.Takeover, r.MaxAttempts, microseconds(r.Lease), microseconds(r.Retention))
	if err != nil {
		return reprise.ClaimResult{}, err
	}
	return result, nil
}

// Renew implements [reprise.Store] in one statement for the whole batch.
func (s *Store) Renew(ctx context.Context, rs []reprise.RenewRequest) ([]reprise.RenewStatus, error) {
	return s.renew(ctx, rs)
}

// Complete implements [reprise.Store] in one statement.
func (s *Store) Complete(ctx context.Context, r reprise.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.complete(ctx, r)
}

// Release implements [reprise.Store] in one statement.
func (s *Store) Release(ctx context.Context, id reprise.ID, owner reprise.Owner) error {
	return s.run(ctx, "release", s.sql.release, func(rows pgx.Rows) error {
		readable := true // nothing there is nothing to complain of
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
