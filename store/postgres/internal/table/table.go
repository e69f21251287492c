// Package table is the table of the records: its schema, its statements, and the
// operations that the two stores and their operators have in common.
package table

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/upkeep"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Options is the configuration, with every default filled in.
type Options struct {
	Schema, Table string
	Mode          pgx.QueryExecMode // of the statements of every request; zero follows the pool
	ExecMode      pgx.QueryExecMode // of every other statement
	NoCombining   bool
	TxTimeout     time.Duration
	Accept        []string // codes of findings
	Purge         upkeep.Pace
	Logger        *slog.Logger
}

// Table is the table of the records, with the operations that both stores share: purge,
// inspect, check, and single statements that commit at once.
type Table struct {
	Db      wire.Database
	Options Options
	Names   Names
	Sender  wire.Sender

	Statements  statements
	purging     purgeBound
	purgeFailed upkeep.Minutely
	missing     missingSchema
}

// New returns the records that o names. The error wraps ErrInvalid.
func New(db wire.Database, o Options) (*Table, error) {
	if db.Pool == nil && db.SQL == nil {
		return nil, Invalid("the pool is nil")
	}
	t := &Table{Db: db, Options: o, Names: NewNames(o), Sender: wire.Sender{Mode: o.Mode, Logger: o.Logger}}
	t.Statements = newStatements(&t.Names)
	return t, nil
}

// maxTries bounds how often a statement that lost a race runs. It loses a race if another
// transaction commits between its snapshot and its conflict check; eight times in a row
// mean that something else is wrong.
const maxTries = 8

// ErrLostRace makes [Table.On] execute the statement again.
var ErrLostRace = errors.New("a concurrent statement changed the record each time")

// Run executes one statement that commits at once and hands its rows to read, which may
// be called more than once.
func (t *Table) Run(ctx context.Context, op, sql string, read func(pgx.Rows) error, args ...any) error {
	args = append([]any{t.Options.ExecMode}, args...)
	return t.On(ctx, op, func(conn *pgx.Conn) error { return Query(ctx, conn, sql, args, read) })
}

// On calls statement with a connection, and again while it loses races. It returns
// ErrNotReplicated for a commit that no standby confirmed.
func (t *Table) On(ctx context.Context, op string, statement func(*pgx.Conn) error) error {
	s, err := t.Db.Acquire(ctx, op)
	if err != nil {
		return err
	}
	defer s.Release()
	return s.Do(func(conn *pgx.Conn) error {
		wire.Unconfirmed(conn) // forget the mark of earlier statements
		return t.repeat(ctx, op, conn, func() error { return statement(conn) })
	})
}

// repeat calls statement until it loses no race, and classifies its error.
func (t *Table) repeat(ctx context.Context, op string, conn *pgx.Conn, statement func() error) error {
	var err error
	for try := 1; ; try++ {
		err = statement()
		raced := errors.Is(err, ErrLostRace) || wire.HasCode(err, wire.CodeSerialization, wire.CodeDeadlock)
		if !raced {
			break
		}
		if try == maxTries || !pause(ctx, try) {
			return fmt.Errorf("%w: postgres: %s: %w", store.ErrBusy, op, ErrLostRace)
		}
	}
	switch {
	case wire.Unconfirmed(conn):
		return NotReplicated(op)
	case errors.Is(err, store.ErrCorrupt):
		return err
	case err != nil:
		t.ReportMissing(ctx, err)
		return wire.Fail(op, err)
	}
	return nil
}

// Query executes sql and reads it to its end: only then has the server committed.
func Query(ctx context.Context, conn *pgx.Conn, sql string, args []any, read func(pgx.Rows) error) error {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	readErr := read(rows)
	rows.Close()
	if err := rows.Err(); err != nil {
		return err
	}
	return readErr
}

// Ask executes a statement of every request once, in the way that [wire.Sender.On]
// returns: in binary with the values and the reader of call, or as text with args and
// scan. It also sends the text if the session has lost the prepared statement, because
// then the statement was not executed.
func (t *Table) Ask(ctx context.Context, conn *pgx.Conn, call wire.Call, args func() []any, scan func(pgx.Rows) error) error {
	if sending := t.Sender.On(conn); sending != wire.Text {
		err := wire.Send(ctx, conn, sending == wire.Prepared, call)
		if !wire.NotPrepared(err) {
			return err
		}
		t.Sender.Lost(ctx, conn, err)
	}
	return Query(ctx, conn, call.Statement.SQL, append([]any{t.Options.ExecMode}, args()...), scan)
}

// pause waits for a random time that grows with try, and not at all for the first one. It
// reports whether ctx is still valid.
func pause(ctx context.Context, try int) bool {
	if try == 1 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(rand.N(time.Duration(try) * time.Millisecond)) //nolint:gosec // jitter needs no secrecy
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// ReportMissing logs an error that says that the tables do not exist.
func (t *Table) ReportMissing(ctx context.Context, err error) {
	t.missing.report(ctx, t.Options.Logger, t.Names.records, err)
}

// missingSchema logs, at most once a minute, that the tables do not exist: every request
// fails then, and the log has to say why.
type missingSchema struct{ upkeep.Minutely }

func (m *missingSchema) report(ctx context.Context, logger *slog.Logger, table string, err error) {
	if !wire.HasCode(err, wire.CodeNoTable, wire.CodeNoColumn, wire.CodeNoFunction, wire.CodeNoSchema) {
		return
	}
	if _, due := m.Count(); due {
		logger.LogAttrs(ctx, slog.LevelError, "reprisepg: the schema is missing or older than this release; run Migrate",
			slog.String("table", table), slog.String("error", err.Error()))
	}
}

// Microseconds returns d in microseconds, the resolution of the server's clock.
func Microseconds(d time.Duration) int64 { return d.Microseconds() }

// FromMicroseconds turns the microseconds of an answer into a duration.
func FromMicroseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// Invalid is the error for an argument of the caller.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: postgres: %s", store.ErrInvalid, fmt.Sprintf(format, args...))
}

// NotReplicated is the error for a commit that no synchronous standby confirmed.
func NotReplicated(op string) error {
	return fmt.Errorf("%w: postgres: %s: the server stopped waiting for its synchronous standby", store.ErrNotReplicated, op)
}

// Usage says how many connections of the pool are in use.
func (t *Table) Usage() []store.Usage {
	pool := t.Db.Use()
	return []store.Usage{{Name: "connections", Used: int64(pool.Used), Limit: int64(pool.Limit)}}
}
