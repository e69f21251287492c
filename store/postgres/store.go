package reprisepg

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/lazytx"
	"github.com/reprise-go/reprise/store/postgres/internal/handlertx"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Store keeps the records in a table: every claim is a statement that commits at once,
// and holds for its lease. It is safe for concurrent use and needs no Close: a goroutine
// that it starts ends once no caller waits for a statement, or with the transaction of a
// handler. The caller owns the pool.
//
// Besides [store.Store] it is a [store.Transactor] (see [Tx]), a [store.Checker], a
// [store.Inspector], a [store.Purger], a [store.Maintainer] and a [store.Meter].
type Store struct {
	table        *table.Table
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

// New returns the store over pool. It does not contact the server; [Open] does.
// The tables must exist: see [Migrate]. The error wraps ErrInvalid.
func New(pool *pgxpool.Pool, c Config) (*Store, error) {
	return newStore(wire.Database{Pool: pool}, c)
}

// NewSQL is [New] for a *sql.DB over pgx's driver (github.com/jackc/pgx/v5/stdlib).
// With another driver every call fails with ErrMisconfigured.
func NewSQL(db *sql.DB, c Config) (*Store, error) {
	return newStore(wire.Database{SQL: db}, c)
}

// Open is [New], followed by [Store.Check] and a trial of every operation on a record
// that it deletes again. The error is ErrMisconfigured for a server on which a guarantee
// does not hold, such as one without the tables, or that refuses an operation. Warnings
// go to [Config.Logger].
func Open(ctx context.Context, pool *pgxpool.Pool, c Config) (*Store, error) {
	return openStore(ctx, wire.Database{Pool: pool}, c)
}

// OpenSQL is [Open] for a *sql.DB: see [NewSQL].
func OpenSQL(ctx context.Context, db *sql.DB, c Config) (*Store, error) {
	return openStore(ctx, wire.Database{SQL: db}, c)
}

func newStore(db wire.Database, c Config) (*Store, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	t, err := table.New(db, o)
	if err != nil {
		return nil, err
	}
	return &Store{t, handlertx.New(t)}, nil
}

func openStore(ctx context.Context, db wire.Database, c Config) (*Store, error) {
	s, err := newStore(db, c)
	if err != nil {
		return nil, err
	}
	if err := s.table.Prove(ctx, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Claim implements [store.Store] in one statement for a new record and, while replays are
// common, for a replay; in two for other records that need no write, and in three for one
// that is written again. Claims that arrive while others are on their way are sent
// together: see [Config.NoCombining].
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return store.ClaimResult{}, err
	}
	return s.table.Claim(ctx, &r)
}

// Renew implements [store.Store] in one statement for the whole batch.
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	return s.table.Renew(ctx, rs)
}

// Complete implements [store.Store] in one statement, which may be sent together with
// other calls, as Claim is. A repeated completion takes three.
func (s *Store) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.table.Complete(ctx, &r)
}

// Unknown implements [store.Store] in two statements.
func (s *Store) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.table.Unknown(ctx, &r)
}

// Release implements [store.Store] in two statements, or in three if it finds no record:
// the owner's claim may still be committing.
func (s *Store) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	return s.table.Release(ctx, id, owner)
}

// Transacts implements [store.Transactor]: the pool needs two connections at least.
func (s *Store) Transacts() error {
	if s.table.Db.Use().Limit == 1 {
		return table.Invalid("the pool has one connection, which a handler's transaction would keep from every claim; give it ten or more")
	}
	return nil
}

// Transaction implements [store.Transactor]: see [Tx].
func (s *Store) Transaction(ctx context.Context, id store.ID, owner store.Owner) (context.Context, store.Transaction) {
	return s.transactions.Bind(ctx, id, owner)
}

// Usage implements [store.Meter]: it counts the connections of the pool, and the
// transactions of handlers.
func (s *Store) Usage() []store.Usage { return append(s.table.Usage(), s.transactions.Usage()...) }

// Check implements [store.Checker]: it checks the settings of the server as a connection
// of this pool sees them, the schema, the privileges of the role, and whether the
// settings of pgx suit a pooler. It does not write.
func (s *Store) Check(ctx context.Context) ([]store.Finding, error) { return s.table.Check(ctx) }

// Inspect implements [store.Inspector].
func (s *Store) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	return s.table.Inspect(ctx, id)
}

// List implements [store.Inspector], in the order of the IDs. Page.Total comes from the
// statistics of the table, which ANALYZE and autovacuum bring up to date.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	return s.table.List(ctx, q)
}

// Resolve implements [store.Inspector]. An attempt that comes back afterwards finds that
// it lost the record.
func (s *Store) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	return s.table.Resolve(ctx, id, r)
}

// Purge implements [store.Purger], for a limit of 1 to 100,000 records. Any number of
// processes may purge at once: each skips records that another is about to purge or to
// claim.
//
// It continues where the last call of this store ended. After a call that found fewer
// than limit, the next one starts at the front again.
func (s *Store) Purge(ctx context.Context, limit int) (purged int, err error) {
	return s.table.Purge(ctx, limit)
}

// Maintain implements [store.Maintainer]: it purges at the pace of [Config.Purge] until
// ctx ends. An engine calls it.
func (s *Store) Maintain(ctx context.Context) { s.table.Maintain(ctx) }
