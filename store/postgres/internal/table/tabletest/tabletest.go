// Package tabletest has tables for the tests of both stores that run without a server.
package tabletest

import (
	"cmp"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// New returns a table over db, with the default names.
func New(t pgtest.T, db *sql.DB, o table.Options) *table.Table {
	t.Helper()
	o.Schema, o.Table, o.ExecMode = "public", "reprise_records", cmp.Or(o.Mode, pgx.QueryExecModeExec)
	r, err := table.New(wire.Database{SQL: db}, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
