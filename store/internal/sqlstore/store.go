package sqlstore

import (
	"context"
	"database/sql"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/lazytx"
	"github.com/reprise-go/reprise/store/internal/slots"
)

// Records are the operations on a table: those of [Table], or of a database that has some
// of them in its own way. They get valid requests.
type Records interface {
	Answer(ctx context.Context, r *store.ClaimRequest) (result store.ClaimResult, answered bool, err error)
	Claim(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error)
	Complete(ctx context.Context, r *store.CompleteRequest) error
	Unknown(ctx context.Context, r *store.UnknownRequest) error
	Purge(ctx context.Context, limit int) (purged int, err error)
	Maintain(ctx context.Context, purge func(ctx context.Context, limit int) (int, error))
	Confirmed()
	Usage() []store.Usage
	Transacts() error
	base() *Table
	shared
}

// shared are the operations that a [Store] has as its table has them. List returns
// records in the order of their IDs. An attempt that comes back after a Resolve finds
// that it lost the record.
type shared interface {
	Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error)
	Release(ctx context.Context, id store.ID, owner store.Owner) error
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

var (
	_ store.Store      = (*Store)(nil)
	_ store.Transactor = (*Store)(nil)
	_ store.Checker    = (*Store)(nil)
	_ store.Surveyor   = (*Store)(nil)
	_ store.Inspector  = (*Store)(nil)
	_ store.Purger     = (*Store)(nil)
	_ store.Maintainer = (*Store)(nil)
	_ store.Meter      = (*Store)(nil)
)

// NewStore returns the store over a table, and over the transactions of handlers.
func NewStore(r Records, t *lazytx.Transactions) *Store { return &Store{r, r, r.base(), t} }

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
		return NewStore(t, t.transactions(turns)), nil
	}
	t := NewTable(pool, d, o, &Direct{With: pool.lend, Dialect: d}, conns)
	return NewStore(t, t.transactions(t.Turns())), nil
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
	if result, answered, err := s.records.Answer(ctx, &r); answered || err != nil {
		return result, err
	}
	result, err := s.records.Claim(ctx, &r)
	if err == nil && result.Outcome == store.Claimed {
		s.records.Confirmed()
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
	return s.records.Unknown(ctx, &r)
}

// Transacts implements [store.Transactor]: the pool needs two connections at least.
func (s *Store) Transacts() error { return s.records.Transacts() }

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
func (s *Store) Maintain(ctx context.Context) { s.records.Maintain(ctx, s.records.Purge) }

// Usage implements [store.Meter]: it counts the connections of the pool, and the
// transactions of handlers with those who wait for one.
func (s *Store) Usage() []store.Usage { return append(s.records.Usage(), s.transactions.Usage()...) }
