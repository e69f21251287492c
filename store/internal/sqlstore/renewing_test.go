package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

var errDeadlock = errors.New("deadlock")

// fakeServer is a database that has no rows. Each of its statements calls statement.
type fakeServer struct{ statement func() error }

func (s *fakeServer) Connect(context.Context) (driver.Conn, error) { return &fakeConn{server: s}, nil }
func (s *fakeServer) Driver() driver.Driver                        { return nil }

type fakeConn struct {
	driver.Conn

	server *fakeServer
}

func (c *fakeConn) Close() error { return nil }

func (c *fakeConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return noRows{}, c.server.statement()
}

func (c *fakeConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(0), c.server.statement()
}

type noRows struct{}

func (noRows) Columns() []string         { return nil }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }

// tableOn returns a table with many writers whose statements call statement.
func tableOn(t *testing.T, statement func() error) *Table {
	t.Helper()
	db := sql.OpenDB(&fakeServer{statement})
	t.Cleanup(func() { _ = db.Close() })
	d := &Dialect{Name: "db", Classify: func(err error, _ bool) error {
		if errors.Is(err, errDeadlock) {
			return ErrLostRace
		}
		return store.ErrUnavailable
	}}
	return &Table{DB: db, Dialect: d, Writer: &Direct{DB: db, Dialect: d}}
}

func renewals(n int) []store.RenewRequest {
	rs := make([]store.RenewRequest, n)
	for i := range rs {
		rs[i] = store.RenewRequest{ID: store.ID{byte(i)}, Owner: store.NewOwner(), Lease: time.Minute}
	}
	return rs
}

// panicOf returns the value with which f panics.
func panicOf(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// TestPanicOfADriverReachesTheCallerOfRenew: it neither ends the process nor hangs.
func TestPanicOfADriverReachesTheCallerOfRenew(t *testing.T) {
	t.Parallel()
	table := tableOn(t, func() error { panic("of the driver") })
	if got := panicOf(func() { _, _ = table.Renew(t.Context(), renewals(3*eachRenews)) }); got != "of the driver" {
		t.Errorf("panic %v", got)
	}
}

func TestConnectionAfterAPanicIsClosed(t *testing.T) {
	t.Parallel()
	table := tableOn(t, func() error { panic("of the driver") })
	if got := panicOf(func() {
		_ = table.Writer.Write(t.Context(), "claim", func(ctx context.Context, on Conn) error {
			_, err := on.ExecContext(ctx, "UPDATE")
			return err
		})
	}); got != "of the driver" {
		t.Errorf("panic %v", got)
	}
	for deadline := time.Now().Add(5 * time.Second); table.DB.Stats().OpenConnections > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the connection stays open")
		}
	}
}
