package reprisepg

import (
	"context"
	"fmt"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// Store keeps the records in a table: every claim is a statement that commits at once,
// and holds for its lease. It is safe for concurrent use and needs no Close: a goroutine
// that it starts ends once no caller waits for a statement, or with the transaction of a
// handler. The caller owns the pool.
//
// A claim takes one statement for a new record and, while replays are common, for a
// replay, two for other records that need no write, and up to four for one that is
// rewritten. A completion takes one, and so does a batch of renewals. Claims and
// completions that arrive while eight are on their way are sent together, in one
// transaction. A purge goes on where the last one of the store ended.
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
func storeOf(t *sqlstore.Table) *Store { return &Store{t, t, t, t, t, t, t, t, t} }

// New returns the store over db. It does not contact the server; [Open] does.
// The tables must exist: see [Migrate]. The error wraps ErrInvalid.
func New[P Pool](db P, c Config) (*Store, error) {
	t, err := newTable(databaseOf(db), c)
	if err != nil {
		return nil, err
	}
	return storeOf(t.Table), nil
}

// Open is [New], followed by [store.Checker] and a trial of every operation on a record
// that it deletes again. The error is ErrMisconfigured for a server on which a guarantee
// does not hold, such as one without the tables, or that refuses an operation. Warnings
// go to [Config.Logger].
func Open[P Pool](ctx context.Context, db P, c Config) (*Store, error) {
	t, err := newTable(databaseOf(db), c)
	if err != nil {
		return nil, err
	}
	if err := t.Prove(ctx); err != nil {
		return nil, fmt.Errorf("%w%s", err, t.rowSecurityAdvice(ctx))
	}
	return storeOf(t.Table), nil
}
