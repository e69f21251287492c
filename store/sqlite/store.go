package reprisesqlite

import (
	"database/sql"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/slots"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// Store keeps the records in a table: every claim is committed at once, and holds for its
// lease. It is safe for concurrent use and needs no Close: the goroutine that writes ends
// with the last transaction that a call asked for, and others with that of a handler. The
// caller owns the *sql.DB.
//
// A claim reads, and begins a transaction if it has to write. Claims and completions that
// arrive while a transaction is on its way share the next one.
//
// Besides [store.Store] it is a [store.Transactor] (see [Tx]), a [store.Checker], a
// [store.Inspector], a [store.Purger], a [store.Maintainer] and a [store.Meter].
type Store struct {
	*shared

	table *sqlstore.Table
}

// shared has the methods of a store that need no text of their own.
type shared = sqlstore.Store

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

// New returns the store over db, with any driver of SQLite. It does not contact the
// database; [Open] does. The table must exist: see [Migrate]. The error wraps ErrInvalid.
func New(db *sql.DB, c Config) (*Store, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, sqlstore.Invalid(dialect.Name, "the *sql.DB is nil")
	}
	turns := &slots.Slots{Limit: 1} // the file has one writer
	pool := sqlstore.NewPool(db, &dialect)
	t := sqlstore.NewTable(pool, &dialect, o, sqlstore.NewSerial(pool, &dialect, turns))
	return &Store{sqlstore.NewStore(t, t.Transactions(turns)), t}, nil
}

// Transacts implements [store.Transactor]: the pool needs two connections at least.
func (s *Store) Transacts() error {
	if s.table.DB.Stats().MaxOpenConnections == 1 {
		return sqlstore.Invalid(dialect.Name, "the pool has one connection, which a handler's transaction would keep from every replay; call SetMaxOpenConns with 4 or more")
	}
	return nil
}
