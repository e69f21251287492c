// Package sqlstore is a store in portable SQL over a *sql.DB. Every decision is taken
// here, in Go; a [Dialect] has the differences between databases.
//
// # Algorithm
//
// Each operation reads the row of a record together with the store's clock, decides what
// becomes of it, and writes the row back on the condition that it is still the one that
// was read: its fence and its revision, which every write raises, are the same, and no
// instant in it has passed since. A write that finds another row has lost a race, and the
// operation starts again. So the statements are correct at every isolation level, with
// and without a transaction around them. A claim reads without a transaction first: an
// answer of the record needs no write.
//
// A refusal because a record has ended makes no write that could lose a race.
// Where the database has many writers, the record is read again first, behind those who
// are writing it: one of them may have decided before the end, and commit after it.
//
// Instants and durations are integers, in microseconds.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
)

// Dialect has the differences between databases.
type Dialect struct {
	// Name is the name of the database, in error texts and cursors.
	Name string

	// Embedded says that the database runs in this process and has one writer at a time. A
	// claim then reads the record first, without waiting to be the writer; and statements of
	// a transaction that has written are not cut short, because that ends it.
	Embedded bool

	// Clock is the SQL expression of the server's clock, in microseconds since 1970. It is
	// read before the statement reads rows, and is NULL in a session that has not the time
	// of the server. Empty is the clock of this host.
	Clock string

	// Guard is the SQL condition of sessions in which a statement outside of transactions
	// commits at once. Empty is all of them.
	Guard string

	// Stale is the SQL condition of servers whose rows may be older than the answers of the
	// primary: a record that is read there decides nothing. Empty is none.
	Stale string

	// Late is the SQL expression of the clock at the moment in which it is evaluated, which
	// is once for each row, after the wait for its lock. Empty where Embedded is set.
	Late string

	// Hold follows a query in the transaction of an attempt: it locks the row that is read,
	// and fails instead of waiting. Wait follows one that waits for those who are writing
	// the row, and Free one that then finds none; both are empty where Embedded is set.
	Hold, Wait, Free string

	// Isolate is the statement that makes the next transaction of the session see what is
	// committed, and lock no more than it reads. Empty where every transaction is so.
	Isolate string

	// DeleteDue and UpdateDue change at most ? of the rows that fulfil {which}, in the order
	// of due_at. The rows are r; the change is {set}.
	DeleteDue, UpdateDue string

	// Quote quotes an identifier.
	Quote func(name string) string

	// Schema are the statements that create the table and its index where they are missing.
	// {records} and {due} stand for the quoted names of the table and of its index.
	Schema []string

	// Classify returns the sentinel of a driver's error, or [ErrLostRace]. committing says
	// that a commit failed; the failure of another statement means that nothing was written,
	// because its transaction is rolled back. It gets no error of a context.
	Classify func(err error, committing bool) error

	// Retires reports whether a connection on which err occurred is of no use any more. Nil
	// is never.
	Retires func(err error) bool

	// Fits returns ErrFull for a payload that the server would not accept. Nil accepts all.
	Fits func(ctx context.Context, on Conn, payload []byte) error
}

func (d *Dialect) retires(err error) bool {
	return err != nil && (errors.Is(err, errStale) || d.Retires != nil && d.Retires(err))
}

// rest returns the context of statements that follow a write in its transaction.
func (d *Dialect) rest(ctx context.Context) context.Context {
	if d.Embedded {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// Conn executes statements: a *sql.DB, *sql.Conn or *sql.Tx.
type Conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// A Writer executes operations that write.
type Writer interface {
	// Write calls f, and commits its writes before it returns nil. It calls f again where
	// what it did before was rolled back. An error of f that [IsResult] ends the operation,
	// which has written nothing then, and no other of the same transaction. Write returns
	// errors of this package's classes.
	Write(ctx context.Context, op string, f func(context.Context, Conn) error) error
}
