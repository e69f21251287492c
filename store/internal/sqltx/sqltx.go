// Package sqltx hands a connection that is in a transaction to a handler as a *sql.Tx
// that cannot end it: its Commit and Rollback have no effect on the server, so that the
// habit of a deferred Rollback does no harm. The store's own statements on a connection
// are those of a [Session].
package sqltx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"sync/atomic"
)

// ErrManaged is the error of Commit and Rollback of a [Lent] transaction.
var ErrManaged = errors.New("reprise: the store commits or rolls back the transaction of an attempt, together with the response")

// errUndone is the error of the statements that follow one which ended the transaction.
var errUndone = errors.New("reprise: an earlier statement failed, and the database rolled the transaction back with it; return from the handler")

// Undoes reports whether the database rolled a transaction back when a statement failed
// with err. It is called before the next statement of the connection, which on has, and
// not again once it did.
type Undoes func(on *Session, err error) bool

// Lent is a connection that is lent to a handler. It turns a panic of the driver into an
// error, because database/sql does not end a query that panics.
type Lent struct {
	Tx *sql.Tx // for the handler

	db        *sql.DB
	conn      driver.Conn
	undoes    Undoes
	refused   atomic.Bool
	undone    atomic.Bool
	panicked  atomic.Bool
	running   context.Context // of the statements of the handler
	interrupt context.CancelFunc
}

// Lend makes the transaction for the handler. The caller has begun it on the server, and
// ends it there after [Lent.Close]. undoes is nil where a failed statement is no news.
func Lend(conn driver.Conn, undoes Undoes) (*Lent, error) {
	l := &Lent{conn: conn, undoes: undoes}
	l.running, l.interrupt = context.WithCancel(context.Background())
	l.db = sql.OpenDB(connector{l})
	var err error
	if l.Tx, err = l.db.BeginTx(context.Background(), nil); err != nil {
		l.End()
		return nil, err
	}
	return l, nil
}

// Refuse makes the calls that the handler still makes fail. It does not wait for those
// that are on their way.
func (l *Lent) Refuse() { l.refused.Store(true) }

// Interrupt is Refuse, and ends the statement of the handler that is on its way.
func (l *Lent) Interrupt() {
	l.Refuse()
	l.interrupt()
}

// Close takes the connection back for the statements of the store: it waits for one of
// the handler that is on its way, and closes the results that it left open.
func (l *Lent) Close() {
	l.Refuse()
	_ = l.Tx.Rollback() // of no effect on the server
}

// Undone reports whether a failed statement of the handler ended the transaction.
func (l *Lent) Undone() bool { return l.undone.Load() }

// Panicked reports whether the driver panicked, so that the state of the connection is
// unknown.
func (l *Lent) Panicked() bool { return l.panicked.Load() }

// End ends the use of the connection, after Close.
func (l *Lent) End() {
	l.interrupt()
	_ = l.db.Close()
}

// begin begins a statement, and returns the error of one that may not be executed.
func (l *Lent) begin() error {
	switch {
	case l.refused.Load():
		return sql.ErrTxDone
	case l.undone.Load():
		return errUndone
	}
	return nil
}

// end ends a statement that failed, or panicked.
func (l *Lent) end(err *error) {
	if value := recover(); value != nil {
		l.panicked.Store(true)
		*err = errPanic(value)
		return
	}
	switch {
	case *err == nil, errors.Is(*err, driver.ErrSkip), errors.Is(*err, io.EOF):
		return
	case l.undoes == nil, l.undone.Load(), l.panicked.Load():
		return
	}
	on := new(Prepared).On(l.conn)
	defer on.End(false)
	if l.undoes(on, *err) {
		l.undone.Store(true)
	}
	if on.Panicked() {
		l.panicked.Store(true)
	}
}
