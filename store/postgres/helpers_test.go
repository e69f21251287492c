package reprisepg

import (
	"database/sql"
	"log/slog"
	"testing"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// newTestTable returns the table of the defaults over db.
func newTestTable(t *testing.T, db *sql.DB, logger *slog.Logger) *table {
	t.Helper()
	return newTable(wire.Database{SQL: db}, options{schema: "public", Options: sqlstore.Options{Table: "reprise_records", Logger: logger}})
}
