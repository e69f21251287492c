package reprisesqlite

import (
	"cmp"
	"context"
	"database/sql"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/slots"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// TransactionalStore runs each attempt in one transaction, which its handler finds by
// [Tx]. The rows that the handler writes there and the stored response commit together or
// not at all, over any number of retries, crashes and pauses.
//
// SQLite has one writer at a time, so one attempt runs at a time. Claims of other
// operations wait, first come, first served, until shortly before their context ends, and
// then fail with ErrBusy. Claims of other processes wait, too, in no particular order.
// Replays do not wait. It is for services whose handlers take milliseconds: with 10 ms
// each, a hundred requests run in a second. Use the leased [Store] for a handler that
// calls another service.
//
// An attempt has no lease. If its process crashes, its transaction is rolled back, and
// the next request with the key runs the operation. An attempt that outlasts
// [Config.TxTimeout] is rolled back, too. A duplicate of an attempt that runs in another
// process waits as other claims do, because its record is invisible before the commit.
//
// It is safe for concurrent use and needs no Close: a goroutine that it starts ends with
// its transaction. Besides [store.Store] it is a [store.ContextBinder], and has the
// abilities of [Store].
type TransactionalStore struct {
	operations
	store *sqlstore.Transactional
}

var (
	_ store.Store         = (*TransactionalStore)(nil)
	_ store.ContextBinder = (*TransactionalStore)(nil)
	_ store.Checker       = (*TransactionalStore)(nil)
	_ store.Inspector     = (*TransactionalStore)(nil)
	_ store.Purger        = (*TransactionalStore)(nil)
	_ store.Maintainer    = (*TransactionalStore)(nil)
	_ store.Meter         = (*TransactionalStore)(nil)
	_ store.Leaser        = (*TransactionalStore)(nil)
)

// NewTransactional returns the transactional store over db, whose pool needs at least two
// connections. It does not contact the database; [OpenTransactional] does. The table must
// exist: see [Migrate]. The error wraps ErrInvalid.
func NewTransactional(db *sql.DB, c Config) (*TransactionalStore, error) {
	t, err := newTable(db, c)
	switch {
	case err != nil:
		return nil, err
	case db.Stats().MaxOpenConnections == 1:
		return nil, dialect.Invalid("the pool has one connection, which an attempt holds while replays need another; call SetMaxOpenConns with 4 or more")
	}
	turns := &slots.Slots{Limit: 1}
	serial := sqlstore.NewSerial(db, &dialect, t.Options.Table, lock)
	t.Writer = &sqlstore.Slotted{Slots: turns, Writer: serial, Dialect: &dialect}
	return &TransactionalStore{operations{t}, sqlstore.NewTransactional(t, serial, turns, cmp.Or(c.TxTimeout, DefaultTxTimeout))}, nil
}

// OpenTransactional is [NewTransactional], followed by Check and a trial of every
// operation on a record that it deletes again: see [Open].
func OpenTransactional(ctx context.Context, db *sql.DB, c Config) (*TransactionalStore, error) {
	s, err := NewTransactional(db, c)
	if err != nil {
		return nil, err
	}
	if err := s.prove(ctx, s, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Tx returns the transaction of the attempt that ctx belongs to. It returns false where
// there is none: outside a handler, on a route without the middleware or without a key,
// or with another store. ctx may be the context of the handler's framework, see
// [store.ContextKey].
//
// Writes through it commit together with the stored response. Writes through the *sql.DB
// wait for the attempt, which waits for the handler: use the transaction for all of them.
// Do not call its Commit or Rollback: a store cannot refuse them in database/sql, only
// detect them. A Rollback undoes the attempt. A Commit makes the effects permanent
// without the response, and Complete answers ErrMisconfigured. Use a SAVEPOINT for a part
// that may be rolled back.
//
// Once a statement has failed, return from the handler with a failure. After some errors,
// such as a full disk or a write whose context ended, SQLite has rolled back the whole
// transaction, and would commit a later statement alone.
func Tx(ctx context.Context) (*sql.Tx, bool) { return sqlstore.TxFrom(ctx, &dialect) }

// Claim implements [store.Store]. Its claims are Atomic, with a transaction open for the
// handler.
func (s *TransactionalStore) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return store.ClaimResult{}, err
	}
	return s.store.Claim(ctx, &r)
}

// Renew implements [store.Store]. An attempt of this store needs no renewal and is
// answered Renewed while it runs here; leased records in the same table are renewed.
func (s *TransactionalStore) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	return s.store.Renew(ctx, rs)
}

// Complete implements [store.Store]: it stores the response in the transaction of the
// attempt and commits. If the handler ended the transaction, the error is
// ErrMisconfigured, because its writes may or may not be committed.
func (s *TransactionalStore) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.store.Complete(ctx, &r)
}

// Unknown implements [store.Store]: it rolls the effects of the attempt back and commits
// the record alone.
func (s *TransactionalStore) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.store.Unknown(ctx, &r)
}

// Release implements [store.Store]: it rolls the transaction of the attempt back.
func (s *TransactionalStore) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	return s.store.Release(ctx, id, owner)
}

// Bind implements [store.ContextBinder]: it makes the transaction of the attempt
// available to [Tx].
func (s *TransactionalStore) Bind(ctx context.Context, id store.ID, owner store.Owner) context.Context {
	return s.store.Bind(ctx, id, owner)
}

// Atomic implements [store.ContextBinder].
func (s *TransactionalStore) Atomic() bool { return true }

// Leased implements [store.Leaser]: it returns the leased store over the same table,
// whose writes take turns with the attempts of this store.
func (s *TransactionalStore) Leased() store.Store { return &Store{operations{s.table}} }

// Usage implements [store.Meter]: it counts the connections of the pool, the one slot,
// which a running attempt has, and the claims that wait for it.
func (s *TransactionalStore) Usage() []store.Usage { return s.store.Usage() }
