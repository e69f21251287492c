package reprisesqlite

import (
	"context"
	"database/sql"

	"github.com/reprise-go/reprise/core/store"
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
// Its methods are those of the interfaces in it. [New] and [Open] make stores; the zero
// value is not usable.
type Store struct {
	store.Store
	store.Transactor // see [Tx]
	store.Checker
	store.Inspector
	store.Counter
	store.Surveyor
	store.Purger
	store.Maintainer
	store.Meter
}

// storeOf returns the store over t.
func storeOf(t *sqlstore.Table, err error) (*Store, error) {
	if err != nil {
		return nil, err
	}
	return &Store{t, t, t, t, t, t, t, t, t}, nil
}

// New returns the store over db, with any driver of SQLite. It does not contact the
// database; [Open] does. The table must exist: see [Migrate]. The error wraps ErrInvalid.
func New(db *sql.DB, c Config) (*Store, error) { return storeOf(dialect.New(db, c.options())) }

// Open is [New], followed by [store.Checker], which does not see connections that were
// opened with other settings, and a trial of every operation on a record that it deletes
// again. The error is ErrMisconfigured for a database on which a guarantee does not hold.
// Warnings go to [Config.Logger].
func Open(ctx context.Context, db *sql.DB, c Config) (*Store, error) {
	return storeOf(dialect.Open(ctx, db, c.options()))
}
