package reprisepg

import (
	"context"
	"io/fs"
	"path"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// The statements of a step are apart by an empty line, and those within a function are
// not.
const betweenStatements = ";\n\n"

// steps returns the steps of the schema: the files of sql/migrations. If a condition that
// a step shares with the statements changes, the step gets a copy of the old one.
func (n *names) steps() []sqlstore.Step {
	files, err := fs.Glob(sqlFiles, "sql/migrations/*.sql")
	if err != nil {
		panic(err) // a bug in this package
	}
	statements := func(file string) []string {
		return strings.Split(strings.TrimSuffix(n.fill(readSQL(file)), ";\n"), betweenStatements)
	}
	list := make([]sqlstore.Step, len(files))
	for i, file := range files {
		base := path.Base(file)
		_, name, _ := strings.Cut(strings.TrimSuffix(base, ".sql"), "_")
		list[i] = sqlstore.Step{Name: name, Up: statements("migrations/" + base), Down: statements("migrations/down/" + base)}
	}
	return list
}

// versions creates the table of the steps that were applied.
const versions = "CREATE TABLE IF NOT EXISTS {migrations} (version integer NOT NULL PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"

// alone begins a transaction, waits for the others that migrate a table of the schema,
// and creates the schema if it is missing. At a stricter level, the snapshot would be
// older than the lock, and miss what another process has just migrated. The server ends
// the transaction of a machine that vanished. A statement that waits for the transactions
// that use the table gives up after a second.
func (n *names) alone(ctx context.Context, on sqlstore.Conn, _ string) error {
	if _, err := on.Exec(ctx, beginTx); err != nil {
		return err
	}
	ignore := func(sqlstore.Row) error { return nil }
	err := on.Query(ctx, "SELECT set_config('lock_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '10s', true), "+
		"pg_advisory_xact_lock(hashtextextended($1::text, 0))", ignore, "reprise migrate "+n.schema)
	exists := false
	if err == nil {
		err = on.Query(ctx, "SELECT set_config('lock_timeout', '1s', true), EXISTS (SELECT FROM pg_namespace WHERE nspname = $1::text)",
			func(row sqlstore.Row) error { return row.Scan(nil, &exists) }, n.schema)
	}
	if err == nil && !exists { // IF NOT EXISTS would need the privilege even if the schema exists
		_, err = on.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{n.schema}.Sanitize())
	}
	return err
}
