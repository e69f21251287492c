// Package table is the table of the records in PostgreSQL: the operations that every
// database has (package sqlstore), with the statements of most requests in PostgreSQL's
// own way, the checks of the server, and the schema.
package table

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
	"github.com/reprise-go/reprise/store/internal/upkeep"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Name is that of the database in error texts, and by which handlers ask.
const Name = "postgres"

// Options is the configuration, with every default filled in.
type Options struct {
	sqlstore.Options

	Schema      string
	NoCombining bool
	Accept      []string // codes of findings
}

// Table is the table of the records, with the operations on it.
type Table struct {
	*sqlstore.Table

	Db      wire.Database
	Options Options
	Names   Names
	Sender  wire.Sender

	Statements    statements
	queue         *batching.Queue[queuedCall] // of claims and completions; nil: they are not combined
	active        atomic.Int64                // claims and completions on their way
	maxUncombined int64                       // how many may be on their way before they are combined
	purgeFrom     atomic.Int64                // where in the index the next purge begins
	missing       upkeep.Minutely
}

// New returns the records that o names. The error wraps ErrInvalid.
func New(db wire.Database, o Options) (*Table, error) {
	if db.Pool == nil && db.SQL == nil {
		return nil, Invalid("the pool is nil")
	}
	t := &Table{Db: db, Options: o, Names: NewNames(o), Sender: wire.Sender{Logger: o.Logger}}
	t.Statements = newStatements(&t.Names)
	d := newDialect(&t.Names)
	o.Table = t.Names.table
	t.Table = sqlstore.NewTable(nil, d, o.Options, &sqlstore.Direct{With: t.with, Dialect: d})
	t.Spare(t.Db.Use().Limit)
	t.Own = own{t}
	t.queue = newQueue(t)
	return t, nil
}

// reportMissing logs, at most once a minute, an error that says that the tables do not
// exist: every request fails then, and the log has to say why.
func (t *Table) reportMissing(ctx context.Context, err error) {
	if !wire.HasCode(err, wire.CodeNoTable, wire.CodeNoColumn, wire.CodeNoFunction, wire.CodeNoSchema) {
		return
	}
	if _, due := t.missing.Count(); due {
		t.Options.Logger.LogAttrs(ctx, slog.LevelError, "reprisepg: the schema is missing or older than this release; run Migrate",
			slog.String("table", t.Names.records), slog.String("error", err.Error()))
	}
}

// Invalid is the error for an argument of the caller.
func Invalid(format string, args ...any) error { return sqlstore.Invalid(Name, format, args...) }

// notReplicated is the error for a commit that no synchronous standby confirmed.
func notReplicated(op string) error {
	return fmt.Errorf("%w: postgres: %s: the server stopped waiting for its synchronous standby", store.ErrNotReplicated, op)
}
