package reprisepg

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/leased"
	"github.com/reprise-go/reprise/store/postgres/internal/transactional"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// TransactionalStore runs each attempt in one transaction, which its handler finds by
// [Tx], or by [SQLTx] over a *sql.DB. The rows that the handler writes there and the
// stored response commit together or not at all, over any number of retries, crashes
// and pauses.
//
// An attempt has no lease. A process that crashes, or whose connection breaks, loses its
// attempt at once, and the next request with the key runs the operation. An attempt that
// outlasts [Config.TxTimeout] is rolled back.
//
// It is safe for concurrent use and needs no Close: a goroutine that it starts ends with
// its statement, or with its attempt. Each attempt holds one connection of the pool until
// it is completed or released. At most MaxConns − 2 attempts run at once. Further claims
// wait, first come, first served, until shortly before their context ends, and then fail
// with ErrBusy; replays and duplicates wait for 10 ms at most. See
// [TransactionalStore.Stats].
//
// Besides [store.Store] it is a [store.Checker], a [store.ContextBinder], a
// [store.Inspector], a [store.Purger], a [store.Maintainer] and a [store.Leaser].
type TransactionalStore struct {
	operations
	store *transactional.Store
}

var (
	_ store.Store         = (*TransactionalStore)(nil)
	_ store.ContextBinder = (*TransactionalStore)(nil)
	_ store.Checker       = (*TransactionalStore)(nil)
	_ store.Inspector     = (*TransactionalStore)(nil)
	_ store.Purger        = (*TransactionalStore)(nil)
	_ store.Maintainer    = (*TransactionalStore)(nil)
	_ store.Leaser        = (*TransactionalStore)(nil)
)

// NewTransactional returns the transactional store over pool, which needs at least
// three connections and should have ten or more. It does not contact the server;
// [OpenTransactional] does. The tables must exist: see [Migrate]. The error wraps
// ErrInvalid.
func NewTransactional(pool *pgxpool.Pool, c Config) (*TransactionalStore, error) {
	return newTransactional(wire.Database{Pool: pool}, c)
}

// NewTransactionalSQL is [NewTransactional] for a *sql.DB over pgx's driver
// (github.com/jackc/pgx/v5/stdlib); handlers find their transaction by [SQLTx]. With
// another driver every call fails with ErrMisconfigured. Call SetMaxOpenConns before, and
// SetMaxIdleConns with the same number: by default, database/sql keeps only two idle
// connections, and opens and closes the others all the time.
func NewTransactionalSQL(db *sql.DB, c Config) (*TransactionalStore, error) {
	return newTransactional(wire.Database{SQL: db}, c)
}

// OpenTransactional is [NewTransactional], followed by [TransactionalStore.Check] and a
// trial of every operation on a record that it deletes again: see [Open].
func OpenTransactional(ctx context.Context, pool *pgxpool.Pool, c Config) (*TransactionalStore, error) {
	return openTransactional(ctx, wire.Database{Pool: pool}, c)
}

// OpenTransactionalSQL is [OpenTransactional] for a *sql.DB: see [NewTransactionalSQL].
func OpenTransactionalSQL(ctx context.Context, db *sql.DB, c Config) (*TransactionalStore, error) {
	return openTransactional(ctx, wire.Database{SQL: db}, c)
}

func newTransactional(db wire.Database, c Config) (*TransactionalStore, error) {
	t, err := newTable(db, c)
	if err != nil {
		return nil, err
	}
	s, err := transactional.New(t)
	if err != nil {
		return nil, err
	}
	return &TransactionalStore{operations{t}, s}, nil
}

func openTransactional(ctx context.Context, db wire.Database, c Config) (*TransactionalStore, error) {
	s, err := newTransactional(db, c)
	if err != nil {
		return nil, err
	}
	// The rival shares no memory with s, so it has to ask the server about an attempt of s.
	rival, err := transactional.New(s.table)
	if err != nil {
		return nil, err
	}
	if err := s.table.Prove(ctx, s.store, rival); err != nil {
		return nil, err
	}
	return s, nil
}

// Stats shows how the attempts of a [TransactionalStore] use its connections.
type Stats struct {
	Slots       int           // attempts that may run at once
	InUse       int           // attempts that run
	Waiting     int           // claims that wait for one of them to end
	LongestWait time.Duration // of a claim, since the store was made
}

// Stats returns how many attempts run, and how many claims wait for one of them to end.
func (s *TransactionalStore) Stats() Stats {
	return Stats(s.store.Stats())
}

// Claim implements [store.Store]. Its claims are Atomic, with a transaction open for the
// handler. If another process runs an attempt with the same key, the answer is InProgress
// even for a different request, because the fingerprint is invisible before that attempt
// commits.
func (s *TransactionalStore) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	return s.store.Claim(ctx, r)
}

// Renew implements [store.Store]. An attempt of this store needs no renewal and is
// answered Renewed while it runs here; leased records in the same table are renewed.
func (s *TransactionalStore) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	return s.store.Renew(ctx, rs)
}

// Complete implements [store.Store]: it stores the response in the transaction of the
// attempt and commits. If the answer to the COMMIT is lost, it takes the attempt's lock
// on another connection, after which that COMMIT can no longer be under way, and looks
// for the record. ErrNotApplied is certain; ErrUnknown says that the lock or the server
// was unavailable until ctx ended. If the handler ended the transaction, the error is
// ErrMisconfigured, because its writes may or may not be committed. Complete does not
// detect a handler that then began another transaction in which a statement failed: the
// answer is about that transaction.
func (s *TransactionalStore) Complete(ctx context.Context, r store.CompleteRequest) error {
	return s.store.Complete(ctx, r)
}

// Release implements [store.Store]: it rolls the transaction of the attempt back.
func (s *TransactionalStore) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	return s.store.Release(ctx, id, owner)
}

// Unknown implements [store.Store]: it rolls the effects of the attempt back and commits
// the record alone, even if the attempt has lost its connection, provided that no other
// attempt has begun.
func (s *TransactionalStore) Unknown(ctx context.Context, r store.UnknownRequest) error {
	return s.store.Unknown(ctx, r)
}

// Bind implements [store.ContextBinder]: it makes the transaction of the attempt
// available to [Tx] and [SQLTx].
func (s *TransactionalStore) Bind(ctx context.Context, id store.ID, owner store.Owner) context.Context {
	return s.store.Bind(ctx, id, owner)
}

// Atomic implements [store.ContextBinder]. It is true: the transaction of the attempt has
// both its claim and the effects of its handler.
func (s *TransactionalStore) Atomic() bool { return true }

// Leased implements [store.Leaser]: the leased store over the same table and pool.
func (s *TransactionalStore) Leased() store.Store {
	return &Store{operations{s.table}, leased.New(s.table)}
}

// Check implements [store.Checker]: in addition to the checks of the leased store, it
// checks the size of the pool.
func (s *TransactionalStore) Check(ctx context.Context) ([]store.Finding, error) {
	return s.store.Check(ctx)
}

// Usage implements [store.Meter]: it counts the connections of the pool, the slots, of
// which each running attempt has one, and the claims that wait for a slot.
func (s *TransactionalStore) Usage() []store.Usage {
	return s.store.Usage()
}
