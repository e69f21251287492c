// Package sqlstore is a store in portable SQL over a *sql.DB. It makes every decision in
// Go; a [Dialect] has the differences between databases.
//
// # Algorithm
//
// A claim inserts its record, and a completion updates the one of its owner, each in one
// statement that reads the store's clock. Where such a statement changes nothing, and in
// all other operations, the row is read together with the clock, and written back on the
// condition that it is still the one that was read: its fence and its revision, which
// every write raises, are the same, and no instant in it has passed since. A write that
// finds another row has lost a race, and the operation starts again. So the statements
// are correct at every isolation level, inside and outside of a transaction. A claim
// reads first while replays are common, and always where a read waits for no writer.
//
// An operation that is refused because a record has ended or lapsed makes no write that
// could lose a race. So if the database has many writers, it first reads the record once
// more, after waiting for those who are writing it: one of them may have decided before
// the end, and commit after it.
//
// Instants and durations are integers, in microseconds.
package sqlstore

import (
	"context"
	"time"

	"github.com/reprise-go/reprise/store/internal/sqltx"
)

// Dialect has the differences between databases.
type Dialect struct {
	// Name is the name of the database, in error texts and cursors.
	Name string

	// Embedded says that the database runs in this process and has one writer at a time. A
	// claim then reads the record first, without waiting to be the writer; and contexts do
	// not interrupt the statements of a transaction that has written, because that would end
	// it.
	Embedded bool

	// Clock is the SQL expression of the server's clock, in microseconds since 1970. It is
	// evaluated before the statement reads rows. Timely is the condition that is true in
	// sessions whose time is that of the server; empty means in all. An empty Clock means
	// the clock of this host.
	Clock, Timely string

	// Guard is the SQL condition that is true in sessions in which a statement outside of a
	// transaction commits at once. Empty means in all sessions.
	Guard string

	// Stale is the SQL condition that is true on servers whose rows may be older than those
	// of the primary, so that no decision may rely on them. Empty means on none.
	Stale string

	// Late is the SQL expression of the clock at the moment of its evaluation: once for each
	// row, after the wait for its lock. It is empty if Embedded is set.
	Late string

	// Begin returns the statements that begin the transaction of a handler, which a server
	// ends if its client is silent for so long. The transaction has a savepoint then. Back
	// is the statement that restores what they changed for the session; empty means that
	// they changed nothing.
	Begin func(timeout time.Duration) []string
	Back  string

	// Undoes reports whether a statement of a handler that failed has ended its transaction.
	// NoSavepoint reports whether an error says that there is no such savepoint.
	Undoes      sqltx.Undoes
	NoSavepoint func(err error) bool

	// Hold is the suffix of a query in the transaction of a handler: it locks the row, after
	// waiting for others who write it. Wait is the suffix of a query that waits for those
	// without locking the row, and Free that of one that skips the row instead. All are
	// empty if Embedded is set.
	Hold, Wait, Free string

	// Unseen says that Wait does not wait for a transaction that inserts the row.
	Unseen bool

	// Isolate is the statement that makes the next transaction of the session see what is
	// committed, and lock no more than it reads. Empty means that every transaction does.
	Isolate string

	// DeleteDue and UpdateDue change at most ? of the rows r that satisfy {which}, in the
	// order of due_at. The change of UpdateDue is {set}.
	DeleteDue, UpdateDue string

	// DueBytes bounds the payloads of the rows that DeleteDue or UpdateDue changes at once,
	// of which there is one at least: a transaction of replicated servers has a largest
	// size. 0 means that there is no bound.
	DueBytes int64

	// Insert begins the INSERT of a row, up to the name of the table, and Unique ends it.
	// Where there is a row, it inserts none, or it fails with an error that Taken reports.
	// Taken is nil where it never fails.
	Insert, Unique string
	Taken          func(err error) bool

	// Hasty is the prefix of an INSERT that fails instead of waiting for a transaction that
	// holds the row. Taken reports that error as well. Empty means that it waits.
	Hasty string

	// Told is the function that returns its argument, and makes it the number that the
	// result of an INSERT has (driver.Result.LastInsertId). Empty if Clock is.
	Told string

	// Numbered says that the parameters of a statement are $1 and so on, and not ?.
	Numbered bool

	// Tables is the query of the tables of any store, ten at most: the name of each as
	// Options.Table has it, or with what else tells where it is, and its quoted name.
	Tables string

	// Quote quotes an identifier.
	Quote func(name string) string

	// Steps are the steps of the schema. {records}, {due} and {migrations} stand for the
	// quoted names of the table, of its index, and of the table of the steps that were
	// applied. Versions is the statement that creates the latter if it is missing.
	Steps    []Step
	Versions string

	// Calls is a query that fails if a function is missing that statements of this release
	// call. Empty means that they call none.
	Calls string

	// Alone begins the transaction, or makes the session, in which one process migrates a
	// table. It fails with a busy error while there is another one.
	Alone func(ctx context.Context, on Conn, table string) error

	// Missing reports whether an error says that a table does not exist, and Done whether it
	// says that a statement of a step has had its effect already. A nil Done means never:
	// the steps are executed as a whole or not at all.
	Missing, Done func(err error) bool

	// Classify returns the sentinel for a driver's error, or [ErrLostRace]. committing says
	// that a commit failed. When another statement fails, its transaction is rolled back.
	// Classify gets no error of a context.
	Classify func(err error, committing bool) error

	// Advice returns the remedy for the failure of an operation, as the end of its text, or
	// an empty text if none is known. Nil means never.
	Advice func(op string, err error) string

	// Retires reports whether a connection must be closed after err, and ReadOnly whether
	// err is the refusal of a write by a server that has become read-only. Nil means never.
	Retires, ReadOnly func(err error) bool

	// Lost reports whether the server did not execute a prepared statement because it does
	// not have it any more. Nil means that it never loses one.
	Lost func(err error) bool

	// Settings is the query of the settings that Judge needs: their names, and their values
	// as texts. Judge returns the findings about them, and whether the server is a replica,
	// whose table is not read. JudgeTable returns those about a table with the schema of
	// this release; nil means that there are none.
	Settings   string
	Judge      func(t *Table, on Conn, settings map[string]string) (list Findings, replica bool)
	JudgeTable func(ctx context.Context, t *Table) (Findings, error)

	// Fits returns ErrFull for a payload that the server would not accept. Nil means that it
	// accepts all.
	Fits func(ctx context.Context, on Conn, payload []byte) error
}

// now returns the clock of this host, or 0 for a database with a clock.
func (d *Dialect) now() int64 {
	if d.Clock != "" {
		return 0
	}
	return time.Now().UnixMicro()
}

// rest returns the context of statements that follow a write in its transaction.
func (d *Dialect) rest(ctx context.Context) context.Context {
	if d.Embedded {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// Conn executes statements on one connection.
type Conn interface {
	// Exec executes a statement that writes, and returns how many rows it changed.
	Exec(ctx context.Context, statement string, args ...any) (changed int, err error)

	// Query executes a statement that reads, and calls read for each row of its answer. It
	// ends at an error of read, and returns it.
	Query(ctx context.Context, statement string, read func(Row) error, args ...any) error
}

// A Row is one row of an answer. Its values are valid during the call that has it.
type Row interface{ Scan(to ...any) error }

// A Writer executes operations that write.
type Writer interface {
	// Write calls f, and commits its writes before it returns nil. It calls f again if the
	// writes of f were rolled back. An error of f for which [IsResult] is true ends the
	// operation, which must not have written anything, but no other operation in the same
	// transaction. Write returns errors that wrap a sentinel of package store.
	Write(ctx context.Context, op string, f func(context.Context, Conn) error) error
}

// Lend calls f with a connection, and closes it if f says that it is broken. It returns
// an error if it did not call f.
type Lend func(ctx context.Context, op string, f func(on Conn) (broken bool)) error
