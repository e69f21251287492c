package reprisemysql

import (
	"context"
	"database/sql"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// Store is the leased store: every claim is committed at once, and holds for its lease.
// It is safe for concurrent use, starts no goroutine that outlives a call and needs no
// Close; the caller owns the *sql.DB.
//
// Besides [store.Store] it is a [store.Checker], a [store.Inspector], a [store.Purger], a
// [store.Maintainer] and a [store.Meter].
type Store struct{ operations }

var (
	_ store.Store      = (*Store)(nil)
	_ store.Checker    = (*Store)(nil)
	_ store.Inspector  = (*Store)(nil)
	_ store.Purger     = (*Store)(nil)
	_ store.Maintainer = (*Store)(nil)
	_ store.Meter      = (*Store)(nil)
)

// New returns the leased store over db, with any driver of MySQL. It does not contact the
// database; [Open] does. The table must exist: see [Migrate]. The error wraps ErrInvalid.
func New(db *sql.DB, c Config) (*Store, error) {
	t, err := newTable(db, c)
	if err != nil {
		return nil, err
	}
	return &Store{operations{t}}, nil
}

// Claim implements [store.Store] by a read, followed by a write unless the record answers
// the claim.
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return store.ClaimResult{}, err
	}
	return s.table.Claim(ctx, &r)
}

// Renew implements [store.Store], over up to eight connections, and half of the pool.
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	return s.table.Renew(ctx, rs)
}

// Complete implements [store.Store] by a read and a write.
func (s *Store) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.table.Complete(ctx, &r)
}

// Unknown implements [store.Store] by a read and a write.
func (s *Store) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.table.Unknown(ctx, &r)
}

// Release implements [store.Store] by a read and a write.
func (s *Store) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	return s.table.Release(ctx, id, owner)
}

// operations are the methods for operators, which both stores have.
type operations struct{ table *sqlstore.Table }

// newTable returns the table that c names. The error wraps ErrInvalid.
func newTable(db *sql.DB, c Config) (*sqlstore.Table, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, dialect.Invalid("the *sql.DB is nil")
	}
	return sqlstore.NewTable(db, &dialect, o, &sqlstore.Direct{DB: db, Dialect: &dialect}), nil
}

// Inspect implements [store.Inspector].
func (o *operations) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	return o.table.Inspect(ctx, id)
}

// List implements [store.Inspector], in the order of the IDs.
func (o *operations) List(ctx context.Context, q store.Query) (store.Page, error) {
	return o.table.List(ctx, q)
}

// Resolve implements [store.Inspector]. An attempt that comes back afterwards finds that
// it lost the record.
func (o *operations) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	return o.table.Resolve(ctx, id, r)
}

// Purge implements [store.Purger], for a limit of 1 to 100,000 records. It skips records
// that another transaction has locked.
func (o *operations) Purge(ctx context.Context, limit int) (purged int, err error) {
	return o.table.Purge(ctx, limit)
}

// Maintain implements [store.Maintainer]: it purges at the pace of [Config.PurgeEvery]
// until ctx ends. An engine calls it.
func (o *operations) Maintain(ctx context.Context) { o.table.Maintain(ctx) }

// Usage implements [store.Meter]: it counts the connections of the pool.
func (o *operations) Usage() []store.Usage { return o.table.Usage() }
