package sqltx

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/reprise-go/reprise/core/store"
)

// Session executes the statements of the store on a connection of a driver. It does what
// database/sql does, except that a panic of the driver is an error, and that a statement
// which has to be prepared is prepared once. It is not safe for concurrent use.
type Session struct {
	conn     driver.Conn
	prepared *Prepared
	own      statements // of this session, or of the connection
	kept     bool       // own is of the connection
	panicked bool
}

// Exec executes a statement, and returns how many rows it changed.
func (s *Session) Exec(ctx context.Context, statement string, args ...any) (changed int, err error) {
	defer s.guard(&err)
	result, err := s.execute(ctx, statement, args)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// Insert executes the INSERT of a row, and reports whether it inserted it. number is the
// LastInsertId of its result.
func (s *Session) Insert(ctx context.Context, statement string, args ...any) (number int64, inserted bool, err error) {
	defer s.guard(&err)
	result, err := s.execute(ctx, statement, args)
	if err != nil {
		return 0, false, err
	}
	n, err := result.RowsAffected()
	if err == nil {
		number, err = result.LastInsertId()
	}
	return number, n == 1, err
}

func (s *Session) execute(ctx context.Context, statement string, args []any) (driver.Result, error) {
	var direct func([]driver.NamedValue) (driver.Result, error)
	if e, ok := s.conn.(driver.ExecerContext); ok {
		direct = func(values []driver.NamedValue) (driver.Result, error) { return e.ExecContext(ctx, statement, values) }
	}
	return runOn(ctx, s, statement, args, direct, preparedStmt.ExecContext)
}

// Query executes a query, and calls read for each row until that fails. The values are
// valid during the call.
func (s *Session) Query(ctx context.Context, statement string, read func([]driver.Value) error, args ...any) (err error) {
	defer s.guard(&err)
	var direct func([]driver.NamedValue) (driver.Rows, error)
	if q, ok := s.conn.(driver.QueryerContext); ok {
		direct = func(values []driver.NamedValue) (driver.Rows, error) { return q.QueryContext(ctx, statement, values) }
	}
	rows, err := runOn(ctx, s, statement, args, direct, preparedStmt.QueryContext)
	if err != nil {
		return err
	}
	err = readAll(ctx, rows, read)
	return cmp.Or(err, rows.Close())
}

// Panicked reports whether the driver panicked, so that the state of the connection is
// unknown.
func (s *Session) Panicked() bool { return s.panicked }

// End ends the use of the connection, which the pool closes if it is broken.
func (s *Session) End(broken bool) {
	if broken && s.kept {
		s.prepared.drop(s.conn)
	}
	if s.kept || s.panicked {
		return
	}
	var err error
	defer s.guard(&err)
	for _, on := range s.own {
		_ = on.Close()
	}
}

// guard makes a panic of the driver an error.
func (s *Session) guard(err *error) {
	if value := recover(); value != nil {
		s.panicked = true
		*err = errPanic(value)
	}
}

// runOn executes a statement directly, if the driver can do that, or prepared.
func runOn[T any](
	ctx context.Context, s *Session, statement string, args []any,
	direct func([]driver.NamedValue) (T, error), prepared func(preparedStmt, context.Context, []driver.NamedValue) (T, error),
) (result T, err error) {
	if err := ctx.Err(); err != nil {
		return result, err
	}
	if s.own == nil {
		s.own, s.kept = s.prepared.of(s.conn)
	}
	if direct != nil && s.own[statement] == nil {
		values, err := arguments(s.conn, nil, args)
		if err == nil {
			result, err = direct(values)
		}
		if !errors.Is(err, driver.ErrSkip) {
			return result, err
		}
	}
	for {
		on, old := s.own[statement]
		if !old {
			if on, err = prepare(ctx, s.conn, statement); err != nil {
				return result, err
			}
			s.own[statement] = on
		}
		values, err := arguments(s.conn, on, args)
		if err == nil {
			result, err = prepared(on, ctx, values)
		}
		if err == nil || !s.prepared.isLost(err) {
			return result, err
		}
		delete(s.own, statement) // the server did not execute it
		_ = on.Close()
		if !old {
			return result, err
		}
	}
}

// preparedStmt is a prepared statement of a driver.
type preparedStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// prepare prepares a statement on conn. The error is ErrMisconfigured for a driver whose
// methods have no contexts.
func prepare(ctx context.Context, conn driver.Conn, statement string) (preparedStmt, error) {
	var on driver.Stmt
	if p, ok := conn.(driver.ConnPrepareContext); ok {
		var err error
		if on, err = p.PrepareContext(ctx, statement); err != nil {
			return nil, err
		}
		if known, ok := on.(preparedStmt); ok {
			return known, nil
		}
		_ = on.Close()
	}
	return nil, fmt.Errorf("%w: the driver of %T has no methods with contexts: use a newer one", store.ErrMisconfigured, conn)
}

// readAll calls read for each row.
func readAll(ctx context.Context, rows driver.Rows, read func([]driver.Value) error) error {
	values := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(values); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := read(values); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil { // not every driver looks at it between two rows
			return err
		}
	}
}

// arguments converts parameters as database/sql does. on is nil for a statement that is
// not prepared.
func arguments(conn driver.Conn, on driver.Stmt, args []any) ([]driver.NamedValue, error) {
	checker, ok := on.(driver.NamedValueChecker)
	if !ok {
		checker, _ = conn.(driver.NamedValueChecker)
	}
	values := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		v := &values[i]
		v.Ordinal, v.Value = i+1, arg
		err := driver.ErrSkip
		if checker != nil {
			err = checker.CheckNamedValue(v)
		}
		if errors.Is(err, driver.ErrSkip) {
			v.Value, err = driver.DefaultParameterConverter.ConvertValue(arg)
		}
		if err != nil {
			return nil, fmt.Errorf("parameter %d: %w", i+1, err)
		}
	}
	return values, nil
}
