package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
)

// ErrLostRace says that another writer changed the row that an operation read.
var ErrLostRace = errors.New("another writer changed the record each time")

// sentinels are the errors of the Store contract.
var sentinels = []error{
	store.ErrLeaseLost, store.ErrUnavailable, store.ErrBusy, store.ErrUnknown, store.ErrNotApplied, store.ErrNotReplicated,
	store.ErrCorrupt, store.ErrFull, store.ErrMisconfigured, store.ErrInvalid, store.ErrNotFound, store.ErrRecordChanged,
}

// errSession says that the clock of a session is unusable, that its statements would not
// commit, or that they see what may never be committed.
var errSession = fmt.Errorf("%w: a session of the pool has autocommit off, READ UNCOMMITTED, an open transaction or a fixed timestamp; open the pool without these settings, and end every transaction", store.ErrMisconfigured)

// errOpen says that a connection of a database with one writer had a transaction, whose
// reads are of the past, and which a write would become a part of.
var errOpen = fmt.Errorf("%w: a connection of the pool had an open transaction, which is rolled back now; end each transaction that begins with BEGIN as SQL on its connection, or use BeginTx", store.ErrMisconfigured)

// errStale says that the rows of a server may be old.
var errStale = fmt.Errorf("%w: the server is read-only: a replica, or a primary that failed over; connect to the primary", store.ErrUnavailable)

// IsResult reports whether err is an error of the Store contract, and not the failure of
// a statement.
func IsResult(err error) bool {
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}

// Fail classifies the failure of a statement of op after which nothing was written.
func (d *Dialect) Fail(op string, err error) error { return d.fail(op, err, false) }

// FailCommit classifies the failure of a commit.
func (d *Dialect) FailCommit(op string, err error) error { return d.fail(op, err, true) }

func (d *Dialect) fail(op string, err error, committing bool) error {
	var sentinel error
	switch {
	case err == nil || IsResult(err):
		return err
	case errors.Is(err, ErrLostRace):
		return fmt.Errorf("%w: %s: %s: %w", store.ErrBusy, d.Name, op, ErrLostRace)
	case committing && (IsContext(err) || isGone(err)):
		sentinel = store.ErrUnknown
	case IsContext(err) && (d.Embedded || op == "migrate"): // it waited for others
		sentinel = store.ErrBusy
	case IsContext(err):
		sentinel, err = store.ErrUnavailable, fmt.Errorf("the server did not answer: %w", err)
	case isGone(err):
		sentinel = store.ErrUnavailable
	default:
		sentinel = d.Classify(err, committing)
	}
	if errors.Is(sentinel, ErrLostRace) {
		return fmt.Errorf("%w: %s: %s: %w: %s", store.ErrBusy, d.Name, op, ErrLostRace, err.Error())
	}
	advice := ""
	if d.Advice != nil {
		advice = d.Advice(op, err)
	}
	return fmt.Errorf("%w: %s: %s: %s%s", sentinel, d.Name, op, err.Error(), advice)
}

// NoConnection returns the error of an operation whose context ended before it had a
// connection. If all that there may be are in use, it waited for one of them, which is
// ErrBusy. Otherwise, and without a limit, which is 0, a new one took too long.
func NoConnection(name, op string, waited time.Duration, used, limit int) error {
	sentinel := store.ErrUnavailable
	if limit > 0 && used >= limit {
		sentinel = store.ErrBusy
	}
	return fmt.Errorf("%w: %s: %s: no connection available within %v (%d are in use; the limit is %d)",
		sentinel, name, op, waited.Round(time.Millisecond), used, limit)
}

// IsContext reports whether err says that a context has ended.
func IsContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isGone reports whether err says that there is no connection.
func isGone(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, sql.ErrTxDone) ||
		err.Error() == "sql: database is closed"
}

// QueueError returns the store's error for a call that the queue ended. Other errors are
// returned as they are.
func (d *Dialect) QueueError(op string, err error) error {
	var ended *batching.Error
	if !errors.As(err, &ended) {
		return err
	}
	sentinel := store.ErrUnavailable
	switch {
	case ended.Sent:
		sentinel = store.ErrUnknown
	case IsContext(ended):
		sentinel = store.ErrBusy
	}
	return fmt.Errorf("%w: %s: %s: %s", sentinel, d.Name, op, ended.Error())
}
