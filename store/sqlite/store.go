package reprisesqlite

import (
	"cmp"
	"context"
	"database/sql"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/lazytx"
	"github.com/reprise-go/reprise/store/internal/slots"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// Store keeps the records in a table: every claim is committed at once, and holds for its
// lease. It is safe for concurrent use and needs no Close: the goroutine that writes ends
// with the last transaction that a call asked for, and others with that of a handler. The
// caller owns the *sql.DB.
//
// Besides [store.Store] it is a [store.Transactor] (see [Tx]), a [store.Checker], a
// [store.Inspector], a [store.Purger], a [store.Maintainer] and a [store.Meter].
type Store struct {
	table        *sqlstore.Table
	transactions *lazytx.Transactions
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Transactor = (*Store)(nil)
	_ store.Checker    = (*Store)(nil)
	_ store.Inspector  = (*Store)(nil)
	_ store.Purger     = (*Store)(nil)
	_ store.Maintainer = (*Store)(nil)
	_ store.Meter      = (*Store)(nil)
)

// New returns the store over db, with any driver of SQLite. It does not contact the
// database; [Open] does. The table must exist: see [Migrate]. The error wraps ErrInvalid.
func New(db *sql.DB, c Config) (*Store, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, dialect.Invalid("the *sql.DB is nil")
	}
	turns := &slots.Slots{Limit: 1} // the file has one writer
	t := sqlstore.NewTable(db, &dialect, o, sqlstore.NewSerial(db, &dialect, turns))
	return &Store{t, t.Transactions(turns, cmp.Or(c.TxTimeout, DefaultTxTimeout))}, nil
}

// Claim implements [store.Store] by a read, followed by a transaction if it has to write.
// Claims and completions that arrive while a transaction is on its way share the next
// one.
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return store.ClaimResult{}, err
	}
	return s.table.Claim(ctx, &r)
}

// Renew implements [store.Store] in one transaction for the whole batch.
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	return s.table.Renew(ctx, rs)
}

// Complete implements [store.Store] in one transaction, which it shares as Claim does.
func (s *Store) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.table.Complete(ctx, &r)
}

// Unknown implements [store.Store] in one transaction, which it shares as Claim does.
func (s *Store) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.table.Unknown(ctx, &r)
}

// Release implements [store.Store] in one transaction, which it shares as Claim does.
func (s *Store) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	return s.table.Release(ctx, id, owner)
}

// Transacts implements [store.Transactor]: the pool needs two connections at least.
func (s *Store) Transacts() error {
	if s.table.DB.Stats().MaxOpenConnections == 1 {
		return dialect.Invalid("the pool has one connection, which a handler's transaction would keep from every replay; call SetMaxOpenConns with 4 or more")
	}
	return nil
}

// Transaction implements [store.Transactor]: see [Tx].
func (s *Store) Transaction(ctx context.Context, id store.ID, owner store.Owner) (context.Context, store.Transaction) {
	return s.transactions.Bind(ctx, id, owner)
}

// Inspect implements [store.Inspector].
func (s *Store) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	return s.table.Inspect(ctx, id)
}

// List implements [store.Inspector], in the order of the IDs.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	return s.table.List(ctx, q)
}

// Resolve implements [store.Inspector]. An attempt that comes back afterwards finds that
// it lost the record.
func (s *Store) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	return s.table.Resolve(ctx, id, r)
}

// Purge implements [store.Purger], for a limit of 1 to 100,000 records, in one
// transaction.
func (s *Store) Purge(ctx context.Context, limit int) (purged int, err error) {
	return s.table.Purge(ctx, limit)
}

// Maintain implements [store.Maintainer]: it purges at the pace of [Config.PurgeEvery]
// until ctx ends. An engine calls it.
func (s *Store) Maintain(ctx context.Context) { s.table.Maintain(ctx, s.table.Purge) }

// Usage implements [store.Meter]: it counts the connections of the pool, the writes that
// wait for a transaction, and the one turn to write, with those who wait for it.
func (s *Store) Usage() []store.Usage { return append(s.table.Usage(), s.transactions.Usage()...) }
