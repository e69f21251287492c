package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	d := &Dialect{Name: "db", Quote: strings.ToUpper, Classify: func(err error, _ bool) error {
		if errors.Is(err, errDeadlock) {
			return ErrLostRace
		}
		return store.ErrUnavailable
	}}
	db := newPool(sql.OpenDB(&fakeServer{statement}), d)
	t.Cleanup(func() { _ = db.Close() })
	return NewTable(db, d, Options{}, &Direct{With: db.lend, Dialect: d}, db.use)
}

func requests(n int) []store.RenewRequest {
	rs := make([]store.RenewRequest, n)
	for i := range rs {
		rs[i] = store.RenewRequest{ID: store.ID{byte(i)}, Owner: store.NewOwner(), Lease: time.Minute}
	}
	return rs
}

// TestPanicOfADriverIsAnError: it neither ends the process nor hangs, and its connections
// are closed.
func TestPanicOfADriverIsAnError(t *testing.T) {
	t.Parallel()
	table := tableOn(t, func() error { panic("of the driver") })
	if _, err := table.Renew(t.Context(), requests(3*eachRenews)); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a read: %v, want ErrUnavailable", err)
	}
	if got := table.db.Stats(); got.OpenConnections > 0 {
		t.Errorf("%d connections are open", got.OpenConnections)
	}
}

// TestAConnectionThatHangsHoldsUpOneEntry: the others renew the rest of the batch.
func TestAConnectionThatHangsHoldsUpOneEntry(t *testing.T) {
	t.Parallel()
	const entries = 4 * eachRenews
	var statements atomic.Int64
	rest := make(chan struct{})
	table := tableOn(t, func() error {
		switch statements.Add(1) {
		case 1:
			select {
			case <-rest:
			case <-time.After(time.Minute):
			}
			return io.ErrUnexpectedEOF
		case 2*entries - 1: // each of the rest is renewed, and then looked at
			close(rest)
		}
		return nil
	})
	got, err := table.Renew(t.Context(), requests(entries))
	slices.Sort(got)
	if want := append([]store.RenewStatus{store.RenewBusy}, slices.Repeat([]store.RenewStatus{store.RenewLost}, entries-1)...); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want one busy, and %d lost", got, err, entries-1)
	}
}

// exhausted is a Writer that has connections for the first writes only.
type exhausted struct {
	Writer

	left  atomic.Int64
	waits sync.WaitGroup // for writes without one
}

func (w *exhausted) Write(ctx context.Context, op string, f func(context.Context, Conn) error) error {
	if w.left.Add(-1) < 0 {
		w.waits.Done()
		<-ctx.Done()
		return f(ctx, noConn{}) // at the last moment
	}
	return w.Writer.Write(ctx, op, f)
}

// TestARenewerWithoutAConnectionHoldsUpNoEntry: the one that has a connection renews the
// batch. If none has one, the batch fails.
func TestARenewerWithoutAConnectionHoldsUpNoEntry(t *testing.T) {
	t.Parallel()
	const renewers, entries = 4, 4 * eachRenews
	for conns, want := range [][]store.RenewStatus{nil, slices.Repeat([]store.RenewStatus{store.RenewLost}, entries)} {
		var pool exhausted
		table := tableOn(t, func() error {
			pool.waits.Wait()
			return nil
		})
		pool.Writer = table.Writer
		pool.left.Store(int64(conns))
		pool.waits.Add(renewers - conns)
		table.Writer = &pool
		patience := []time.Duration{10 * time.Millisecond, time.Minute}[conns]
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		got, err := table.Renew(ctx, requests(entries))
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("with %d connections: %v, %v; want %v", conns, got, err, want)
		}
		cancel()
	}
}

// TestRenewalStartsAgainAfterADeadlock as often as any other operation.
func TestRenewalStartsAgainAfterADeadlock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		deadlocks int64
		want      []store.RenewStatus
		err       error
	}{
		{maxTries - 1, []store.RenewStatus{store.RenewLost, store.RenewLost}, nil},
		{maxTries, []store.RenewStatus{store.RenewBusy, store.RenewLost}, nil},
		{2 * maxTries, nil, store.ErrBusy},
	} {
		var statements atomic.Int64
		table := tableOn(t, func() error {
			if statements.Add(1) <= c.deadlocks {
				return errDeadlock
			}
			return nil
		})
		got, err := table.Renew(t.Context(), requests(2))
		if !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("after %d deadlocks: %v, %v; want %v, %v", c.deadlocks, got, err, c.want, c.err)
		}
	}
}

// failing is a Writer whose calls begin an entry and then fail, each with the next error,
// and from then on with the last.
type failing struct {
	Writer

	calls atomic.Int64
	errs  []error
}

func (w *failing) Write(ctx context.Context, _ string, f func(context.Context, Conn) error) error {
	_ = f(ctx, noConn{})
	return w.errs[min(int(w.calls.Add(1)), len(w.errs))-1]
}

type noConn struct{}

func (noConn) Exec(context.Context, string, ...any) (int, error) { return 0, driver.ErrBadConn }

func (noConn) Query(context.Context, string, func(Row) error, ...any) error { return driver.ErrBadConn }

// TestBatchFailsWithItsWeakestError: that which says that an entry may have been renewed,
// whichever comes first.
func TestBatchFailsWithItsWeakestError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		errs []error
		want error
	}{
		"unknown first":     {[]error{store.ErrUnknown, store.ErrUnavailable}, store.ErrUnknown},
		"unknown last":      {[]error{store.ErrUnavailable, store.ErrUnknown}, store.ErrUnknown},
		"none was executed": {[]error{store.ErrUnavailable}, store.ErrUnavailable},
	} {
		table := tableOn(t, func() error { return nil })
		table.Writer = &failing{errs: c.errs}
		if statuses, err := table.Renew(t.Context(), requests(2*eachRenews)); !errors.Is(err, c.want) || statuses != nil {
			t.Errorf("%s: %v, %v; want %v", name, statuses, err, c.want)
		}
	}
}
