package sqlstore

import (
	"context"
	"database/sql"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/lazytx"
	"github.com/reprise-go/reprise/store/internal/slots"
)

// Records are the operations on a table that a database may have in its own way; [Table]
// has them all. They get valid requests.
type Records interface {
	Claim(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error)
	Complete(ctx context.Context, r *store.CompleteRequest) error
	Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error)
	Purge(ctx context.Context, limit int) (purged int, err error)
}

// shared are the operations that a [Store] has as its table has them. List returns
// records in the order of their IDs. An attempt that comes back after a Resolve finds
// that it lost the record.
type shared interface {
	Release(ctx context.Context, id store.ID, owner store.Owner) error
	Transacts() error
	store.Inspector
	store.Surveyor
	store.Checker
}

// Store is the store of any database.
type Store struct {
	shared

	records      Records
	table        *Table
	transactions *lazytx.Transactions
}

// NewStore returns the store over a table, which has r in a way of the database, and over
// the transactions of handlers.
func NewStore(t *Table, r Records, transactions *lazytx.Transactions) *Store {
	return &Store{t, r, t, transactions}
}

// New returns the store over the table of o in db. It does not contact the database. The
// error wraps ErrInvalid.
func (d *Dialect) New(db *sql.DB, o Options) (*Store, error) {
	o, err := Fill(d.Name, o)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, Invalid(d.Name, "the *sql.DB is nil")
	}
	pool := newPool(db, d)
	conns := func() (used, limit int) {
		stats := db.Stats()
		return stats.InUse, stats.MaxOpenConnections
	}
	if d.Embedded {
		turns := &slots.Slots{Limit: 1} // the database has one writer
		t := NewTable(pool, d, o, newSerial(pool, d, turns), conns)
		return NewStore(t, t, t.transactions(turns)), nil
	}
	t := NewTable(pool, d, o, &Direct{With: pool.lend, Dialect: d}, conns)
	return NewStore(t, t, t.transactions(t.Turns())), nil
}

// Open is New, followed by [Table.Prove].
func (d *Dialect) Open(ctx context.Context, db *sql.DB, o Options) (*Store, error) {
	s, err := d.New(db, o)
	if err == nil {
		err = s.table.Prove(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Migrate is [Table.Migrate] for the table of o in db.
func (d *Dialect) Migrate(ctx context.Context, db *sql.DB, o Options) error {
	s, err := d.New(db, o)
	if err != nil {
		return err
	}
	return s.table.Migrate(ctx)
}

// Version is [Table.Version] for the table of o in db.
func (d *Dialect) Version(ctx context.Context, db *sql.DB, o Options) (int, error) {
	s, err := d.New(db, o)
	if err != nil {
		return 0, err
	}
	return s.table.Version(ctx)
}

// Claim implements [store.Store].
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return store.ClaimResult{}, err
	}
	if result, answered, err := s.table.answer(ctx, &r); answered || err != nil {
		return result, err
	}
	result, err := s.records.Claim(ctx, &r)
	if err == nil && result.Outcome == store.Claimed {
		s.table.confirmed()
	}
	return result, err
}

// Complete implements [store.Store].
func (s *Store) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.records.Complete(ctx, &r)
}

// Unknown implements [store.Store].
func (s *Store) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.table.Unknown(ctx, &r)
}

// Renew implements [store.Store]. An invalid entry refuses the whole batch.
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	for i := range rs {
		if err := rs[i].Validate(); err != nil {
			return nil, err
		}
	}
	if len(rs) == 0 {
		return nil, nil
	}
	return s.records.Renew(ctx, rs)
}

// Transaction implements [store.Transactor].
func (s *Store) Transaction(ctx context.Context, id store.ID, owner store.Owner) (context.Context, store.Transaction) {
	return s.transactions.Bind(ctx, id, owner)
}

// maxPurge is the largest number of records that one call deletes or empties.
const maxPurge = 100_000

// Purge implements [store.Purger], for a limit of 1 to 100,000 records.
func (s *Store) Purge(ctx context.Context, limit int) (purged int, err error) {
	if limit < 1 || limit > maxPurge {
		return 0, Invalid(s.transactions.Name, "purge of %d records: want 1 to %d", limit, maxPurge)
	}
	return s.records.Purge(ctx, limit)
}

// Maintain implements [store.Maintainer]: it purges at the pace of the configuration
// until ctx ends. An engine calls it.
func (s *Store) Maintain(ctx context.Context) { s.table.maintain(ctx, s.records.Purge) }

// Usage implements [store.Meter]: it counts the connections of the pool, and the
// transactions of handlers with those who wait for one.
func (s *Store) Usage() []store.Usage { return append(s.table.usage(), s.transactions.Usage()...) }
