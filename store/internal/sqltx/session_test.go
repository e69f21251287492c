package sqltx

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

var errLost = errors.New("unknown statement")

// fakeConn is a connection of a driver that prepares every statement. It counts those
// that are open.
type fakeConn struct {
	driver.Conn

	open, prepared int
	fail           func(call string) error
	got            []any
}

func (c *fakeConn) PrepareContext(context.Context, string) (driver.Stmt, error) {
	c.open++
	c.prepared++
	return &fakeStmt{conn: c}, nil
}

type fakeStmt struct {
	driver.Stmt

	conn *fakeConn
}

func (s *fakeStmt) NumInput() int { return -1 }

func (s *fakeStmt) Close() error {
	s.conn.open--
	return nil
}

func (s *fakeStmt) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.conn.got = nil
	for _, arg := range args {
		s.conn.got = append(s.conn.got, arg.Value)
	}
	return driver.RowsAffected(1), s.conn.fail("Exec")
}

func (s *fakeStmt) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	return &oneRow{conn: s.conn}, s.conn.fail("Query")
}

type oneRow struct {
	conn         *fakeConn
	read, closed bool
}

func (r *oneRow) Columns() []string { return []string{"n"} }

func (r *oneRow) Close() error {
	if r.closed {
		panic("closed twice")
	}
	r.closed = true
	return r.conn.fail("Close")
}

func (r *oneRow) Next(to []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read, to[0] = true, int64(7)
	return r.conn.fail("Next")
}

func (r *oneRow) HasNextResultSet() bool { return true }
func (r *oneRow) NextResultSet() error   { return r.conn.fail("NextResultSet") }

func newConn() *fakeConn { return &fakeConn{fail: func(string) error { return nil }} }

// keeps returns what keeps the statements of a pool of n connections.
func keeps(n int) *Prepared {
	return &Prepared{Open: func() int { return n }, Lost: func(err error) bool { return errors.Is(err, errLost) }}
}

// valueConn is a connection that is no key of a map, as one that a tracer wraps may be.
type valueConn struct {
	*fakeConn

	_ []int
}

// TestStatementsArePrepared once on a connection. Those that are not kept are closed
// before it: SQLite would keep its file open.
func TestStatementsArePrepared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		*Prepared

		value          bool
		prepared, open int
	}{
		"kept":                    {keeps(1), false, 2, 2},
		"not kept":                {new(Prepared), false, 6, 0},
		"kept by no key of a map": {keeps(1), true, 6, 0},
	} {
		conn := newConn()
		for range 3 {
			s := c.On(conn)
			if c.value {
				s = c.On(valueConn{fakeConn: conn})
			}
			for range 2 {
				if n, err := s.Exec(t.Context(), "UPDATE", 5, "b"); n != 1 || err != nil || !slices.Equal(conn.got, []any{int64(5), "b"}) {
					t.Errorf("%s: %d, %v, of %v", name, n, err, conn.got)
				}
			}
			var got []driver.Value
			err := s.Query(t.Context(), "SELECT", func(row []driver.Value) error {
				got = append(got, row...)
				return nil
			})
			if err != nil || !slices.Equal(got, []driver.Value{int64(7)}) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := s.Exec(ended, "UPDATE", 1, 2); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v in a context that has ended", name, err)
			}
			s.End(false)
		}
		if conn.prepared != c.prepared || conn.open != c.open || len(c.conns) != c.open/2 {
			t.Errorf("%s: %d statements were prepared and %d are open; want %d, %d", name, conn.prepared, conn.open, c.prepared, c.open)
		}
	}
}

// TestLostStatementIsPreparedOnceMore, and not for ever.
func TestLostStatementIsPreparedOnceMore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		losses, prepared int
		err              error
	}{{0, 1, nil}, {1, 2, nil}, {9, 2, errLost}} {
		conn, p, left := newConn(), keeps(1), 0
		conn.fail = func(string) error {
			if left--; left >= 0 {
				return errLost
			}
			return nil
		}
		s := p.On(conn)
		_, err := s.Exec(t.Context(), "UPDATE")
		left = c.losses
		if err == nil {
			_, err = s.Exec(t.Context(), "UPDATE")
		}
		if !errors.Is(err, c.err) || conn.prepared != c.prepared {
			t.Errorf("%d losses: %v, prepared %d times; want %v, %d", c.losses, err, conn.prepared, c.err, c.prepared)
		}
	}
}

// TestConnectionsThatArePastAreForgotten: no more are kept than the pool has open, and
// none that is broken.
func TestConnectionsThatArePastAreForgotten(t *testing.T) {
	t.Parallel()
	p := keeps(3)
	use := func(conn driver.Conn, broken bool) {
		t.Helper()
		s := p.On(conn)
		if _, err := s.Exec(t.Context(), "UPDATE"); err != nil {
			t.Fatal(err)
		}
		s.End(broken)
	}
	often := newConn()
	for range 100 {
		use(often, false)
		use(newConn(), false)
	}
	if len(p.conns) != 3 || often.prepared != 1 {
		t.Errorf("%d connections are kept, want 3; that which is used often was prepared %d times", len(p.conns), often.prepared)
	}
	if use(often, true); len(p.conns) != 2 {
		t.Errorf("%d connections are kept, of which one is broken", len(p.conns)-1)
	}
}

// TestFailureOfAQueryIsSeen in each call in which a driver may execute it.
func TestFailureOfAQueryIsSeen(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"Query", "Next", "NextResultSet", "Close"} {
		for _, panics := range []bool{false, true} {
			conn := newConn()
			conn.fail = func(at string) error {
				switch {
				case at != call:
					return nil
				case panics:
					panic(call)
				}
				return errLost
			}
			lent, err := Lend(conn, func(*Session, error) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			rows, err := lent.Tx.QueryContext(t.Context(), "SELECT")
			if err == nil {
				_, _ = rows.Next(), rows.NextResultSet()
				err = cmp.Or(rows.Err(), rows.Close())
			}
			if err == nil || lent.Panicked() != panics || lent.Undone() == panics {
				t.Errorf("%s, which panics: %t: %v, panicked: %t, undone: %t", call, panics, err, lent.Panicked(), lent.Undone())
			}
			lent.Close()
			lent.End()
		}
	}
}

// bareConn is a connection of a driver without contexts.
type bareConn struct{ driver.Conn }

func TestDriverWithoutContextsIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := keeps(1).On(bareConn{}).Exec(t.Context(), "UPDATE"); !errors.Is(err, store.ErrMisconfigured) {
		t.Error(err)
	}
}

// A connection that database/sql has closed between two looks at it is nil in there.
func TestConnectionClosedMeanwhileIsAnError(t *testing.T) {
	t.Parallel()
	err := Raw(new(sql.Conn), func(any) error {
		t.Error("there is no connection to hand over")
		return nil
	})
	if !errors.Is(err, sql.ErrConnDone) {
		t.Errorf("%v, want sql.ErrConnDone", err)
	}
}
