// Package sqlstore is a store in portable SQL over a *sql.DB. Every decision is taken
// here, in Go; a [Dialect] has what differs between databases.
//
// # Algorithm
//
// Each operation reads the row of a record together with the store's clock, decides what
// becomes of it, and writes the row back on the condition that it is still the one that
// was read: its fence and its revision, which every write raises, are the same. A write
// that finds another row has lost a race, and the operation starts again. So the
// statements are correct at every isolation level, with and without a transaction around
// them. A claim reads without a transaction first: what the record answers needs no
// write.
//
// Instants and durations are integers, in microseconds.
package sqlstore

import (
	"context"
	"database/sql"
)

// Dialect is what differs between databases.
type Dialect struct {
	// Name is the name of the database, in error texts and cursors.
	Name string

	// Clock is the SQL expression of the server's clock, in microseconds since 1970, as of
	// the instant at which it is evaluated. Empty is the clock of this host.
	Clock string

	// Quote quotes an identifier.
	Quote func(name string) string

	// Schema are the statements that create what does not exist yet. {records} and {due}
	// stand for the quoted names of the table and of its index.
	Schema []string

	// Classify returns the sentinel of a driver's error, or [ErrLostRace]. committing says
	// that a commit failed; the failure of another statement means that nothing was written,
	// because its transaction is rolled back. It gets no error of a context.
	Classify func(err error, committing bool) error
}

// Conn executes statements: a *sql.DB, *sql.Conn or *sql.Tx.
type Conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// A Writer executes operations that write.
type Writer interface {
	// Write calls f, and commits what it did before it returns nil. It calls f again where
	// what it did before was rolled back. An error of f that [IsResult] ends the operation,
	// which has written nothing then, and no other of the same transaction. Write returns
	// errors of this package's classes.
	Write(ctx context.Context, op string, f func(context.Context, Conn) error) error
}
