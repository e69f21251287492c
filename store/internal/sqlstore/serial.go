package sqlstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/internal/slots"
)

// serial is the [Writer] of a database that has one writer at a time. Operations that
// arrive while a transaction is on its way share the next one: many share one commit, and
// this process never waits for itself.
type serial struct {
	db      *Pool
	dialect *Dialect
	turns   *slots.Slots
	queue   *batching.Queue[operation]
}

// operation is a write on its way through the queue.
type operation struct {
	name string
	do   func(context.Context, Conn) error
	err  error // of do: see IsResult
}

// beginWriter begins a transaction that is the one writer of the database.
const beginWriter = "BEGIN IMMEDIATE"

// newSerial returns the writer of a database. In turns, of which there is one, its
// transactions wait for the handler that has it, and for no other: the number of handlers
// must not decide how long a renewal waits. The queue bounds the operations of a
// transaction, so that it takes some milliseconds at most.
func newSerial(db *Pool, d *Dialect, turns *slots.Slots) *serial {
	w := &serial{db: db, dialect: d, turns: turns}
	w.queue = batching.New(batching.Config[operation]{
		Send: w.send, Begins: true, Detached: true, // it may have to wait for another process
	})
	return w
}

// Write implements [Writer].
func (w *serial) Write(ctx context.Context, op string, f func(context.Context, Conn) error) error {
	call := w.queue.Call()
	defer call.Release()
	call.Value = operation{name: op, do: f}
	return w.dialect.QueueError(op, w.queue.Do(ctx, call))
}

// send executes a batch in one transaction. If a statement of a batch of several
// operations fails, it gives each operation a separate transaction.
func (w *serial) send(ctx context.Context, batch []batching.Sent[operation]) {
	err := w.transact(ctx, batch)
	if len(batch) > 1 && errors.As(err, new(statementError)) {
		for i := range batch {
			w.send(ctx, batch[i:i+1])
		}
		return
	}
	for _, s := range batch {
		if v := s.Value(); err != nil {
			s.Finish(w.dialect.Fail(v.name, err))
		} else {
			s.Finish(v.err)
		}
	}
}

// statementError is the failure of a statement, after which everything was rolled back.
type statementError struct{ error }

func (e statementError) Unwrap() error { return e.error }

// transact executes a batch in one transaction.
func (w *serial) transact(ctx context.Context, batch []batching.Sent[operation]) error {
	op := batch[0].Value().name
	if err := w.turns.TakeNext(ctx); err != nil {
		return w.dialect.Fail(op, err)
	}
	defer w.turns.Release()
	var result error
	err := w.db.with(ctx, op, func(on connection) (broken bool) {
		result = w.execute(ctx, on, batch)
		return result != nil && on.execute(context.WithoutCancel(ctx), "ROLLBACK") != nil
	})
	if err != nil {
		return w.dialect.Fail(op, err)
	}
	return result
}

// execute begins a transaction, executes a batch in it, and commits. It waits for other
// processes until ctx ends; the transaction does not end with ctx, because an interrupted
// statement would end that of all.
func (w *serial) execute(ctx context.Context, on connection, batch []batching.Sent[operation]) error {
	if err := w.dialect.start(ctx, on, beginWriter); err != nil {
		return err
	}
	rest := context.WithoutCancel(ctx)
	for _, s := range batch {
		v := s.Value()
		if v.err = nil; !s.Begin() {
			continue
		}
		if v.err = v.do(rest, on); v.err != nil && !IsResult(v.err) {
			return statementError{v.err}
		}
	}
	return w.dialect.FailCommit("commit", on.execute(rest, "COMMIT"))
}

// longestPause bounds the wait between two tries to become the writer.
const longestPause = 10 * time.Millisecond

// pause waits for a random time that grows with try, and reports whether ctx is still
// valid.
func pause(ctx context.Context, try int) bool {
	return sleep(ctx, rand.N(min(time.Duration(try)*time.Millisecond, longestPause))) //nolint:gosec // jitter needs no secrecy
}

// sleep waits for d, and reports whether ctx is still valid.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
