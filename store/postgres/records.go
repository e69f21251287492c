package reprisepg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	reprise "github.com/reprise-go/reprise/core"
)

// records is the table, and what both stores do with it: purge, inspect, check, and single statements that commit at once.
type records struct {
	pool   *pgxpool.Pool
	config Config
	sql    statements
	broken error // why nothing can work, found by a constructor that returns no error
}

// newRecords returns records that answer every call with the error, where there is one.
func newRecords(pool *pgxpool.Pool, c Config) (records, error) {
	c, err := c.withDefaults()
	if err == nil {
		err = checkPool(pool)
	}
	if err != nil {
		return records{broken: err}, err
	}
	return records{pool: pool, config: c, sql: newStatements(c)}, nil
}

// maxTries bounds how often a statement that lost a race runs again. A rival that commits between a statement's snapshot
// and its conflict check costs it a try; eight rivals in a row do not happen unless something else is wrong.
const maxTries = 8

// errLostRace is how a statement's reader says that the statement has to run again.
var errLostRace = errors.New("a rival was faster each time")

// run executes one statement that commits at once and hands its rows to read, which may be called more than once. It repeats the
// statement while it loses races, and reports a commit that replicas did not confirm.
func (t *records) run(ctx context.Context, op, sql string, read func(pgx.Rows) error, args ...any) error {
	if t.broken != nil {
		return t.broken
	}
	conn, err := t.pool.Acquire(ctx)
	if err != nil {
		return failAcquire(op, err)
	}
	defer conn.Release()

	unconfirmed(conn.Conn()) // what others left on it
	args = append([]any{t.config.ExecMode}, args...)
	for try := 1; ; try++ {
		err = query(ctx, conn.Conn(), sql, args, read)
		raced := errors.Is(err, errLostRace) || hasCode(err, codeSerialization, codeDeadlock)
		if !raced {
			break
		}
		if try == maxTries || !pause(ctx, try) {
			return fmt.Errorf("%w: %s: %w", reprise.ErrUnavailable, op, errLostRace)
		}
	}
	switch {
	case unconfirmed(conn.Conn()):
		return fmt.Errorf("%w: %s: the wait for the synchronous standby was cancelled", reprise.ErrNotReplicated, op)
	case errors.Is(err, reprise.ErrCorrupt):
		return err
	case err != nil:
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

// pause waits a random moment that grows with try, the first time none, and reports whether ctx still runs.
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

// microseconds is how durations cross to the server, whose clock has no finer grain.
func microseconds(d time.Duration) int64 { return d.Microseconds() }

// fromMicroseconds turns the microseconds of an answer into a duration.
func fromMicroseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// corrupt says which operation found a record that it cannot read.
func corrupt(op string) error {
	return fmt.Errorf("%w: %s: a version, state or field of the record is unknown to this release", reprise.ErrCorrupt, op)
}
