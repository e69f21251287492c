package reprisepg

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/reprise-go/reprise/core/store"
)

// foreign is a connection of another driver, and the connector to it.
type foreign struct{ driver.Conn }

func (f foreign) Connect(context.Context) (driver.Conn, error) { return f, nil }
func (foreign) Driver() driver.Driver                          { return nil }
func (foreign) Close() error                                   { return nil }

// tracing is a connection that wraps another, as those of tracing drivers.
type tracing struct {
	driver.Conn

	inner driver.Conn
}

func (t tracing) Raw() driver.Conn { return t.inner }

func TestSessionFindsTheConnectionInATracingDriver(t *testing.T) {
	t.Parallel()
	ours := &stdlib.Conn{}
	for _, conn := range []driver.Conn{ours, tracing{inner: ours}, tracing{inner: tracing{inner: ours}}} {
		if got, err := pgxConn(conn); err != nil || got != ours.Conn() {
			t.Errorf("%T: %v", conn, err)
		}
	}
}

func TestDatabaseRefusesAnotherDriver(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(foreign{})
	defer func() { _ = db.Close() }()
	if _, err := (database{sql: db}).hold(t.Context(), "begin"); !errors.Is(err, store.ErrMisconfigured) {
		t.Errorf("hold: %v", err)
	}
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are still out", n)
	}
}
