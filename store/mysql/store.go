package reprisemysql

import (
	"context"
	"database/sql"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// Store keeps the records in a table: every claim is committed at once, and holds for its
// lease. It is safe for concurrent use and needs no Close: a goroutine that it starts
// ends with the transaction of a handler, or soon after. The caller owns the *sql.DB.
//
// Besides [store.Store] it is a [store.Transactor] (see [Tx]), a [store.Checker], a
// [store.Inspector], a [store.Purger], a [store.Maintainer] and a [store.Meter].
type Store = sqlstore.Store

// New returns the store over db, with any driver of MySQL. It does not contact the
// database; [Open] does. The table must exist: see [Migrate]. The error wraps ErrInvalid.
func New(db *sql.DB, c Config) (*Store, error) { return dialect.New(db, sqlstore.Options(c)) }

// Open is [New], followed by [store.Checker] and a trial of every operation on a record
// that it deletes again. The error is ErrMisconfigured for a server on which a guarantee
// does not hold. Warnings go to [Config.Logger].
func Open(ctx context.Context, db *sql.DB, c Config) (*Store, error) {
	return dialect.Open(ctx, db, sqlstore.Options(c))
}
