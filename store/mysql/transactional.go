package reprisemysql

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
// An attempt has no lease. It has a named lock of the server (GET_LOCK), which is
// released after its transaction, or when its session ends: after a crash of the process,
// the next request with the key runs the operation at once. An attempt that outlasts
// [Config.TxTimeout] is rolled back. The record of an attempt in another process is
// invisible before its commit, so a duplicate with another fingerprint gets InProgress
// until then, and Mismatch only afterwards.
//
// Each attempt holds one connection. As many attempts run at once as the pool has
// connections, less two for replays, or 64 if the pool has no limit. Further claims wait,
// first come, first served, until shortly before their context ends, and then fail with
// ErrBusy. Replays and duplicates of a running attempt do not wait.
//
// It is safe for concurrent use and needs no Close: a goroutine that it starts ends with
// its call or with its attempt. Besides [store.Store] it is a [store.ContextBinder], and
// has the abilities of [Store].
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

// spare is how many connections attempts leave to replays and other calls, and
// mostAttempts how many attempts run at once if the pool has no limit.
const (
	spare        = 2
	mostAttempts = 64
)

// NewTransactional returns the transactional store over db, whose pool needs at least
// three connections. It does not contact the database; [OpenTransactional] does. The
// table must exist: see [Migrate]. The error wraps ErrInvalid.
func NewTransactional(db *sql.DB, c Config) (*TransactionalStore, error) {
	t, err := newTable(db, c)
	if err != nil {
		return nil, err
	}
	attempts := mostAttempts
	if conns := db.Stats().MaxOpenConnections; conns > 0 {
		attempts = conns - spare
	}
	if attempts < 1 {
		return nil, dialect.Invalid("the pool has too few connections: an attempt holds one, and %d are for replays; call SetMaxOpenConns with 10 or more", spare)
	}
	timeout := cmp.Or(c.TxTimeout, DefaultTxTimeout)
	return &TransactionalStore{operations{t}, sqlstore.NewTransactional(t,
		&sessions{db: db, table: t.Options.Table, timeout: timeout}, &slots.Slots{Limit: attempts}, timeout)}, nil
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
// Writes through it commit together with the stored response. Do not call its Commit or
// Rollback, and execute no statement that commits implicitly, such as CREATE TABLE: a
// store cannot refuse them in database/sql, only detect them. A Rollback undoes the
// attempt. A commit makes the effects before it permanent without the response, and
// Complete answers ErrMisconfigured. Use a SAVEPOINT for a part that may be rolled back.
//
// Its isolation level is READ COMMITTED. After a deadlock (error 1213) the server has
// rolled the whole transaction back: later statements are undone as well, and Complete
// answers ErrNotApplied, so return from the handler.
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

// Leased implements [store.Leaser]: the leased store over the same table.
func (s *TransactionalStore) Leased() store.Store { return &Store{s.operations} }

// Usage implements [store.Meter]: it counts the connections of the pool, the slots, of
// which each running attempt has one, and the claims that wait for a slot.
func (s *TransactionalStore) Usage() []store.Usage { return s.store.Usage() }
