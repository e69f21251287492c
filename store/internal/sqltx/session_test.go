package sqltx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"testing"
)

var errLost = errors.New("unknown statement")

// oldConn is a connection of a driver with the oldest interfaces only. It counts its open
// statements.
type oldConn struct {
	driver.Conn

	open, prepared int
	fail           func() error
	got            []driver.Value
}

func (c *oldConn) Prepare(string) (driver.Stmt, error) {
	c.open++
	c.prepared++
	return &oldStmt{conn: c}, nil
}

type oldStmt struct {
	driver.Stmt

	conn *oldConn
}

func (s *oldStmt) Close() error {
	s.conn.open--
	return nil
}

func (s *oldStmt) Exec(values []driver.Value) (driver.Result, error) {
	s.conn.got = values
	return driver.RowsAffected(1), s.conn.fail()
}

func (s *oldStmt) Query(values []driver.Value) (driver.Rows, error) {
	s.conn.got = values
	return &oneRow{}, s.conn.fail()
}

// ColumnConverter implements [driver.ColumnConverter].
func (s *oldStmt) ColumnConverter(int) driver.ValueConverter { return driver.String }

type oneRow struct{ read, closed bool }

func (r *oneRow) Columns() []string { return []string{"n"} }

func (r *oneRow) Close() error {
	if r.closed {
		panic("closed twice")
	}
	r.closed = true
	return nil
}

func (r *oneRow) Next(to []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read, to[0] = true, int64(7)
	return nil
}

func newConn() *oldConn { return &oldConn{fail: func() error { return nil }} }

// keeps returns what keeps the statements of a pool of n connections.
func keeps(n int) *Prepared {
	return &Prepared{Open: func() int { return n }, Lost: func(err error) bool { return errors.Is(err, errLost) }}
}

func TestDriverOfTheOldestInterfaces(t *testing.T) {
	t.Parallel()
	conn, p := newConn(), keeps(1)
	for range 3 {
		s := p.On(conn)
		if n, err := s.Exec(t.Context(), "UPDATE", 5, "b"); n != 1 || err != nil || !slices.Equal(conn.got, []driver.Value{"5", "b"}) {
			t.Errorf("%d, %v, of %v", n, err, conn.got)
		}
		var got []driver.Value
		err := s.Query(t.Context(), "SELECT", func(row []driver.Value) error {
			got = append(got, row...)
			return nil
		})
		if err != nil || !slices.Equal(got, []driver.Value{int64(7)}) {
			t.Errorf("%v, %v", got, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Exec(ended, "UPDATE", 1, 2); !errors.Is(err, context.Canceled) {
			t.Errorf("%v in a context that has ended", err)
		}
		s.End(false)
	}
	if conn.prepared != 2 || conn.open != 2 {
		t.Errorf("%d statements were prepared and %d are open; want 2", conn.prepared, conn.open)
	}
}

// TestStatementsAreClosedBeforeTheirConnection where nothing is kept: SQLite would keep
// its file open.
func TestStatementsAreClosedBeforeTheirConnection(t *testing.T) {
	t.Parallel()
	var p Prepared
	conn := newConn()
	s := p.On(conn)
	for range 2 {
		if _, err := s.Exec(t.Context(), "UPDATE"); err != nil {
			t.Fatal(err)
		}
	}
	if s.End(false); conn.prepared != 1 || conn.open != 0 {
		t.Errorf("%d statements were prepared, and %d are open", conn.prepared, conn.open)
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
		conn.fail = func() error {
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

// valueConn is a connection that is no key of a map, as one that a tracer wraps may be.
type valueConn struct {
	*oldConn

	_ []int
}

func TestConnectionThatIsNoKeyIsNotKept(t *testing.T) {
	t.Parallel()
	p, conn := keeps(1), newConn()
	s := p.On(valueConn{oldConn: conn})
	if _, err := s.Exec(t.Context(), "UPDATE"); err != nil {
		t.Fatal(err)
	}
	if s.End(false); conn.open != 0 || len(p.conns) != 0 {
		t.Errorf("%d statements are open", conn.open)
	}
	p.On(valueConn{oldConn: conn}).End(true)
}

func TestPanicInAStatementIsAnError(t *testing.T) {
	t.Parallel()
	conn, p := newConn(), keeps(1)
	conn.fail = func() error { panic("of the driver") }
	s := p.On(conn)
	_, err := s.Exec(t.Context(), "UPDATE")
	if !errors.As(err, new(errPanic)) || !s.Panicked() {
		t.Errorf("%v", err)
	}
	s = p.On(conn)
	if err := s.Query(t.Context(), "SELECT", func([]driver.Value) error { return nil }); !errors.As(err, new(errPanic)) || !s.Panicked() {
		t.Errorf("%v", err)
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
