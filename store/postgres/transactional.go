package reprisepg

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/core/store"
)

// spareConns is how many connections of the pool the attempts never take: so many are
// left to answer duplicates and to find out what became of a COMMIT.
const spareConns = 2

// TransactionalStore runs each attempt in one transaction, which its handler finds by
// [Tx], or by [SQLTx] over a *sql.DB. The rows that the handler writes there and the
// stored response commit together or not at all, over any number of retries, crashes
// and pauses.
//
// An attempt has no lease. A crashed process, or one whose connection broke, loses its
// attempt at once, and the next request with the key runs. An attempt that outlasts
// [Config.TxTimeout] is rolled back.
//
// It is safe for concurrent use and starts no goroutine. Each attempt holds one
// connection of the pool until it is completed or released, at most MaxConns − 2 attempts
// at once. Claims beyond that wait, first come, first served, until shortly before their
// context ends, and then fail with ErrUnavailable; a replay or a duplicate waits 10 ms.
// See [TransactionalStore.Stats].
//
// Besides [reprise.Store] it is a [store.Checker], a [store.ContextBinder], a
// [store.Inspector] and a [store.Purger].
type TransactionalStore struct {
	records
	slots  slots
	recent recent

	// noClientCheck says that the server cannot look after a client while it runs a
	// statement: its operating system does not tell.
	noClientCheck atomic.Bool

	mu        sync.Mutex
	attempts  map[store.Owner]*attempt   // those that run and were not ended
	running   map[store.ID]*attempt      // those whose transaction is open
	claiming  map[store.ID]chan struct{} // claims on their way; closed at their end
	undecided map[store.Owner]time.Time  // owners whose last call has no definite answer, and since when
}

var (
	_ store.Store         = (*TransactionalStore)(nil)
	_ store.ContextBinder = (*TransactionalStore)(nil)
	_ store.Checker       = (*TransactionalStore)(nil)
	_ store.Inspector     = (*TransactionalStore)(nil)
	_ store.Purger        = (*TransactionalStore)(nil)
)

// NewTransactional returns the transactional store over pool, which needs at least
// three connections and should have ten or more. It asks nothing of the server:
// [OpenTransactional] does. The tables must exist: see [Migrate]. The error wraps
// ErrInvalid.
func NewTransactional(pool *pgxpool.Pool, c Config) (*TransactionalStore, error) {
	return newTransactional(database{pool: pool}, c)
}

// NewTransactionalSQL is [NewTransactional] for a *sql.DB over pgx's driver
// (github.com/jackc/pgx/v5/stdlib); handlers find their transaction by [SQLTx]. With
// another driver every call fails with ErrMisconfigured. Call SetMaxOpenConns before,
// and SetMaxIdleConns with the same number: database/sql keeps two idle connections
// unless told otherwise, and opens and closes the others all the time.
func NewTransactionalSQL(db *sql.DB, c Config) (*TransactionalStore, error) {
	return newTransactional(database{sql: db}, c)
}

// OpenTransactional is [NewTransactional], and then a check that refuses, with
// ErrMisconfigured, a server on which a guarantee does not hold: one without the
// tables, for example. Warnings go to [Config.Logger].
func OpenTransactional(ctx context.Context, pool *pgxpool.Pool, c Config) (*TransactionalStore, error) {
	s, err := NewTransactional(pool, c)
	if err != nil {
		return nil, err
	}
	if err := refuseUnsafe(ctx, s, s.config.Logger); err != nil {
		return nil, err
	}
	return s, nil
}

// OpenTransactionalSQL is [OpenTransactional] for a *sql.DB: see [NewTransactionalSQL].
func OpenTransactionalSQL(ctx context.Context, db *sql.DB, c Config) (*TransactionalStore, error) {
	s, err := NewTransactionalSQL(db, c)
	if err != nil {
		return nil, err
	}
	if err := refuseUnsafe(ctx, s, s.config.Logger); err != nil {
		return nil, err
	}
	return s, nil
}

func newTransactional(db database, c Config) (*TransactionalStore, error) {
	r, err := newRecords(db, c)
	if err != nil {
		return nil, err
	}
	switch limit := db.use().limit; {
	case limit == 0:
		return nil, invalid("the *sql.DB has no limit of connections; call SetMaxOpenConns with 10 or more")
	case limit <= spareConns:
		return nil, invalid("the pool has %d connections; the transactional store needs at least %d, and should have 10 or more", limit, spareConns+1)
	default:
		return &TransactionalStore{
			records:   r,
			slots:     slots{limit: limit - spareConns},
			attempts:  make(map[store.Owner]*attempt),
			running:   make(map[store.ID]*attempt),
			claiming:  make(map[store.ID]chan struct{}),
			undecided: make(map[store.Owner]time.Time),
		}, nil
	}
}

// Stats returns how many attempts run, and how many claims wait for one of them to end.
func (s *TransactionalStore) Stats() Stats { return s.slots.stats() }

// Claim implements [reprise.Store]. Its claims are Atomic, with a transaction open for
// the handler. A different request with the key of an attempt that runs in another
// process is answered InProgress: nobody sees the fingerprint before it commits.
func (s *TransactionalStore) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
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

// Renew implements [reprise.Store]. An attempt of this store needs no renewal and is
// answered Renewed while it runs here; leased records in the same table are renewed.
func (s *TransactionalStore) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	statuses, err := s.renew(ctx, rs)
	for i := range statuses {
		if s.find(rs[i].ID, rs[i].Owner) != nil {
			statuses[i] = store.Renewed
		}
	}
	return statuses, err
}

// Complete implements [reprise.Store]: it stores the response in the transaction of the
// attempt and commits. Where the answer to the COMMIT is lost, it takes the attempt's
// lock on another connection, so that nothing can be committing any more, and looks.
// ErrNotApplied is certain; ErrUnknown says that the lock or the server was unavailable
// before ctx ended. A handler that ended the transaction makes it ErrMisconfigured,
// because nobody can tell what it committed. One that began another transaction itself,
// in which a statement then failed, is not found out: the answer is about that one.
func (s *TransactionalStore) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	a := s.take(r.ID, r.Owner)
	if a == nil {
		if s.isUndecided(r.Owner) {
			return s.findCommit(ctx, r.ID, r.Owner)
		}
		return s.complete(ctx, &r)
	}
	s.setUndecided(r.Owner)
	err := s.commitAndEnd(ctx, a, r)
	if errors.Is(err, store.ErrUnknown) && ctx.Err() == nil {
		return s.findCommit(ctx, r.ID, r.Owner)
	}
	if !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrNotReplicated) {
		s.setDecided(r.Owner)
	}
	return err
}

// commitAndEnd commits and gives the connection and the slot back, also when a tracer
// of the application panics.
func (s *TransactionalStore) commitAndEnd(ctx context.Context, a *attempt, r store.CompleteRequest) error {
	defer s.end(a)
	err := s.commit(ctx, a, r)
	if err != nil {
		_ = a.rollback(ctx) // the lock is free before the answer is out
	}
	return err
}

// Release implements [reprise.Store]: it rolls the transaction of the attempt back.
func (s *TransactionalStore) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	a := s.take(id, owner)
	if a == nil {
		s.setDecided(owner) // a claim without an answer: its session ends with its connection
		return nil
	}
	defer s.end(a)
	return a.rollback(ctx)
}

// Bind implements [store.ContextBinder]: it makes the transaction of the attempt
// available to [Tx] and [SQLTx].
func (s *TransactionalStore) Bind(ctx context.Context, id store.ID, owner store.Owner) context.Context {
	if a := s.find(id, owner); a != nil {
		return context.WithValue(ctx, txKey{}, a)
	}
	return ctx
}

// lockKey names the lock of an attempt. Advisory locks belong to the whole database, so
// the table is part of it.
func (s *TransactionalStore) lockKey(id store.ID) int64 {
	sum := sha256.Sum256(append([]byte(s.sql.lock+"\x00"), id[:]...))
	return int64(binary.BigEndian.Uint64(sum[:8])) //nolint:gosec // any 64 bits do
}
