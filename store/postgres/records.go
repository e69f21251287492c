package reprisepg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
)

// records is the table, and what both stores do with it: purge, inspect, check, and
// single statements that commit at once.
type records struct {
	db      database
	config  Config
	sql     statements
	purging *purgeBound
	missing *missingSchema

	mode       pgx.QueryExecMode // Config.ExecMode as the application set it
	unprepared *atomic.Bool      // sessions do not keep prepared statements: a pooler shares them
}

// newRecords returns the records that c names. The error wraps ErrInvalid.
func newRecords(db database, c Config) (records, error) {
	mode := c.ExecMode
	c, err := c.withDefaults()
	if err != nil {
		return records{}, err
	}
	if db.pool == nil && db.sql == nil {
		return records{}, invalid("the pool is nil")
	}
	return records{
		db: db, config: c, sql: newStatements(c), purging: new(purgeBound), missing: new(missingSchema),
		mode: mode, unprepared: new(atomic.Bool),
	}, nil
}

// maxTries bounds how often a statement that lost a race runs again. A rival that
// commits between a statement's snapshot and its conflict check costs it a try; eight
// rivals in a row do not happen unless something else is wrong.
const maxTries = 8

// errLostRace tells run that the statement has to run again.
var errLostRace = errors.New("a concurrent statement changed the record each time")

// run executes one statement that commits at once and hands its rows to read, which may
// be called more than once.
func (t *records) run(ctx context.Context, op, sql string, read func(pgx.Rows) error, args ...any) error {
	args = append([]any{t.config.ExecMode}, args...)
	return t.on(ctx, op, func(conn *pgx.Conn) error { return query(ctx, conn, sql, args, read) })
}

// on calls statement with a connection. It repeats it while it loses races, and reports a
// commit that replicas did not confirm.
func (t *records) on(ctx context.Context, op string, statement func(*pgx.Conn) error) error {
	s, err := t.db.acquire(ctx, op)
	if err != nil {
		return err
	}
	defer s.release()
	return s.do(func(conn *pgx.Conn) error {
		unconfirmed(conn) // forget what earlier statements left on it
		return t.repeat(ctx, op, conn, func() error { return statement(conn) })
	})
}

// repeat calls statement until it loses no race, and classifies its error.
func (t *records) repeat(ctx context.Context, op string, conn *pgx.Conn, statement func() error) error {
	var err error
	for try := 1; ; try++ {
		err = statement()
		raced := errors.Is(err, errLostRace) || hasCode(err, codeSerialization, codeDeadlock)
		if !raced {
			break
		}
		if try == maxTries || !pause(ctx, try) {
			return fmt.Errorf("%w: postgres: %s: %w", store.ErrUnavailable, op, errLostRace)
		}
	}
	switch {
	case unconfirmed(conn):
		return notReplicated(op)
	case errors.Is(err, store.ErrCorrupt):
		return err
	case err != nil:
		t.missing.report(ctx, t.config.Logger, t.sql.records, err)
		return fail(op, err)
	}
	return nil
}

// query executes sql and reads it to its end: only then has the server committed.
func query(ctx context.Context, conn *pgx.Conn, sql string, args []any, read func(pgx.Rows) error) error {
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

// pause waits for a random time that grows with try, the first time not at all, and
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

// missingSchema logs that the tables do not exist, at most once a minute: every request
// fails then, and the log has to say why.
type missingSchema struct {
	mu   sync.Mutex
	last time.Time
}

func (m *missingSchema) report(ctx context.Context, logger *slog.Logger, table string, err error) {
	if !hasCode(err, codeNoTable, codeNoColumn, codeNoFunction, codeNoSchema) {
		return
	}
	m.mu.Lock()
	now := time.Now()
	due := now.Sub(m.last) >= time.Minute
	if due {
		m.last = now
	}
	m.mu.Unlock()
	if due {
		logger.LogAttrs(ctx, slog.LevelError, "reprisepg: the schema is missing or older than this release; run Migrate",
			slog.String("table", table), slog.String("error", err.Error()))
	}
}

// microseconds is the form in which durations travel to the server, whose clock has no
// finer grain.
func microseconds(d time.Duration) int64 { return d.Microseconds() }

// fromMicroseconds turns the microseconds of an answer into a duration.
func fromMicroseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// corrupt is the error for a record that this release cannot read.
func corrupt(op string) error {
	return fmt.Errorf("%w: postgres: %s: this release does not know a version, state or field of the record", store.ErrCorrupt, op)
}

// notReplicated is the error for a commit that no synchronous standby confirmed.
func notReplicated(op string) error {
	return fmt.Errorf("%w: postgres: %s: the server stopped waiting for its synchronous standby", store.ErrNotReplicated, op)
}
