package table

import (
	"database/sql"
	"log/slog"
	"testing"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// newTestTable returns the table of the defaults over db.
func newTestTable(t *testing.T, db *sql.DB, logger *slog.Logger) *Table {
	t.Helper()
	r, err := New(wire.Database{SQL: db}, Options{
		Schema: "public", Options: sqlstore.Options{Table: "reprise_records", Logger: logger},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
