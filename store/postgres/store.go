package reprisepg

import (
	"context"
	"fmt"

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

// Claim implements [reprise.Store] in one statement that reads before it writes: a replay writes nothing.
func (s *Store) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return reprise.ClaimResult{}, err
	}
	var result reprise.ClaimResult
	err := s.run(ctx, "claim", s.sql.claim, func(rows pgx.Rows) error {
		if !rows.Next() {
			return errLostRace // nobody was there when the statement began, and somebody is now
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
	if len(rs) == 0 {
		return nil, s.broken
	}
	ids, owners, leases := make([][]byte, len(rs)), make([][]byte, len(rs)), make([]int64, len(rs))
	for i := range rs {
		if err := rs[i].Validate(); err != nil {
			return nil, err
		}
		ids[i], owners[i], leases[i] = rs[i].ID[:], rs[i].Owner[:], microseconds(rs[i].Lease)
	}
	statuses := make([]reprise.RenewStatus, 0, len(rs))
	err := s.run(ctx, "renew", s.sql.renew, func(rows pgx.Rows) error {
		statuses = statuses[:0]
		for rows.Next() {
			var word string
			if err := rows.Scan(&word); err != nil {
				return err
			}
			statuses = append(statuses, renewStatus(word))
		}
		return nil
	}, ids, owners, leases)
	if err != nil {
		return nil, err
	}
	if len(statuses) != len(rs) {
		return nil, fmt.Errorf("%w: renew: %d answers to %d requests", reprise.ErrUnknown, len(statuses), len(rs))
	}
	return statuses, nil
}

// Complete implements [reprise.Store] in one statement.
func (s *Store) Complete(ctx context.Context, r reprise.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	var done bool
	err := s.run(ctx, "complete", s.sql.complete, func(rows pgx.Rows) error {
		done = rows.Next()
		return nil
	}, r.ID[:], r.Owner[:], notNull(r.Payload), microseconds(r.Retention))
	if err != nil || done {
		return err
	}
	// A new statement: the one above may not see what it waited for.
	if _, err := s.look(ctx, "complete", r.ID); err != nil {
		return err
	}
	return fmt.Errorf("%w: complete", reprise.ErrLeaseLost)
}

// Release implements [reprise.Store] in one statement.
func (s *Store) Release(ctx context.Context, id reprise.ID, owner reprise.Owner) error {
	return s.run(ctx, "release", s.sql.release, func(rows pgx.Rows) error {
		var word string
		if rows.Next() {
			if err := rows.Scan(&word); err != nil {
				return err
			}
		}
		if word == wordCorrupt {
			return corrupt("release")
		}
		return nil
	}, id[:], owner[:])
}

// renewStatus translates the words of renew.sql.
func renewStatus(word string) reprise.RenewStatus {
	switch word {
	case "renewed":
		return reprise.Renewed
	case "busy":
		return reprise.RenewBusy
	case "completed":
		return reprise.RenewCompleted
	default:
		return reprise.RenewLost
	}
}

// notNull makes the empty payload a value: NULL is how a row says that it has none.
func notNull(payload []byte) []byte {
	if payload == nil {
		return []byte{}
	}
	return payload
}
