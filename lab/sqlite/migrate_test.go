package sqlite

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/internal/schematest"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// schema is that of a new file.
func (d driver) schema(t *testing.T) *schematest.Schema {
	t.Helper()
	file := filepath.Join(t.TempDir(), "records.db")
	s := schematest.Of(t, func(log *slog.Logger) reprisesqlite.Config { return reprisesqlite.Config{Logger: log} }, reprisesqlite.Migrations,
		reprisesqlite.New, reprisesqlite.Open, reprisesqlite.Migrate, reprisesqlite.SchemaVersion)
	s.Dialect, s.Pool = goose.DialectSQLite3, func() *sql.DB { return d.open(t, file) }
	return s
}

func TestSchema(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		schematest.Run(t, d.schema, reprisesqlite.Tx, "a7fce8c35f7f52d14e1aaa98437956c51a21b9a9ad42c65c06dba43de3f3ca5d")
	})
}

// TestFailedMigrationChangesNothing: a step is applied as a whole or not at all.
func TestFailedMigrationChangesNothing(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		s := d.schema(t)
		st, err := s.New(s.Pool(), nil)
		labtest.Must(t, err)
		add := "ALTER TABLE {records} ADD COLUMN later INTEGER"
		err = schematest.NextRelease(st, add, add)(t.Context())
		labtest.Want(t, "a column twice", err, store.ErrMisconfigured)
		if v, err := s.Version(t.Context(), s.Pool()); v != 0 || err != nil {
			t.Errorf("version %d, %v; want none", v, err)
		}
		labtest.Must(t, s.Migrate(t.Context(), s.Pool(), nil))
		fixed, err := s.New(s.Pool(), nil)
		labtest.Must(t, err)
		labtest.Must(t, schematest.NextRelease(fixed, add)(t.Context()))
	})
}

// TestNamesOfTablesIgnoreCase: as SQLite has it, so two spellings are one store. A name
// without a table is told which others there are.
func TestNamesOfTablesIgnoreCase(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		file := filepath.Join(t.TempDir(), "records.db")
		open := func(table string) *reprisesqlite.Store {
			c, db := reprisesqlite.Config{Table: table}, d.open(t, file)
			labtest.Must(t, reprisesqlite.Migrate(t.Context(), db, c))
			st, err := reprisesqlite.Open(t.Context(), db, c)
			labtest.Must(t, err)
			return st
		}
		upper, lower := open("Payments"), open("payments")
		for range 2 {
			r := labtest.Claimed(t, upper)
			labtest.WantClaim(t, lower, labtest.Rival(r), store.InProgress)
		}
		wrong, err := reprisesqlite.New(d.open(t, file), reprisesqlite.Config{})
		labtest.Must(t, err)
		schematest.WantFinding(t, "the wrong table", wrong, store.Unsafe, "there are records in payments")
		page, err := upper.List(t.Context(), store.Query{Limit: 1})
		labtest.Must(t, err)
		if rest, err := lower.List(t.Context(), store.Query{Limit: 1, After: page.Next}); err != nil || len(rest.Records) != 1 || rest.Records[0].ID == page.Records[0].ID {
			t.Errorf("the second page, by the other name: %+v, %v", rest, err)
		}
	})
}
