package reprisepg

import (
	"fmt"
	"sync/atomic"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/internal/lazytx"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// storeName is the name of the database in error texts, and by which handlers ask.
const storeName = "postgres"

// table is the table of the records: the operations that every database has (package
// sqlstore), with the statements of most requests in PostgreSQL's own way, the checks of
// the server, and the schema.
type table struct {
	*sqlstore.Table

	db    database
	names names

	statements    statements
	queue         *batching.Queue[queuedCall] // of claims and completions
	active        atomic.Int64                // claims and completions on their way
	maxUncombined int64                       // how many may be on their way before they are combined
	purgeFrom     atomic.Int64                // where in the index the next purge begins
	unprepared    atomic.Bool                 // sessions do not keep prepared statements, because a pooler shares them
}

// newTable returns the table of c. The error wraps ErrInvalid.
func newTable(db database, c Config) (*table, error) {
	n, o, err := c.options()
	switch {
	case err != nil:
		return nil, err
	case db.pool == nil && db.sql == nil:
		return nil, invalid("the pool is nil")
	}
	t := &table{db: db, names: n, statements: newStatements(&n)}
	d := newDialect(&n)
	d.Judge, d.JudgeTable = t.judge, t.judgeTable
	t.Table = sqlstore.NewTable(nil, d, o, &sqlstore.Direct{With: t.with, Dialect: d}, db.use)
	t.Lend, t.Own, t.Accepted = t.with, t, c.Accept
	t.Transactions = &lazytx.Transactions{Name: storeName, Timeout: o.TxTimeout, Slots: t.Turns(), Open: t.begin, Find: t.Find}
	t.queue = newQueue(t)
	return t, nil
}

// invalid is the error for an argument of the caller.
func invalid(format string, args ...any) error { return sqlstore.Invalid(storeName, format, args...) }

// notReplicated is the error for a commit that no synchronous standby confirmed.
func notReplicated(op string) error {
	return fmt.Errorf("%w: postgres: %s: the server stopped waiting for its synchronous standby", store.ErrNotReplicated, op)
}
