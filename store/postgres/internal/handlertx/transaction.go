package handlertx

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqltx"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Transaction is that of one attempt. It implements [store.Transaction].
type Transaction struct {
	all     *Transactions
	id      store.ID
	owner   store.Owner
	attempt reprise.AttemptView // to which it belongs

	mu       sync.Mutex
	closed   bool
	begun    bool
	starting chan struct{} // closed when the call that begins it has ended; nil: none does
	giveUp   context.CancelFunc

	held     *wire.Held  // nil before it has begun and after it has ended; guarded by mu, as the watchdog reads it
	conn     *pgx.Conn   // that of held
	lent     *sqltx.Lent // over a *sql.DB
	prepared bool        // the session has the prepared statements
	beganAt  int64       // by the server's clock, in µs since 1970
	watchdog *time.Timer // closes the connection after Config.TxTimeout
	expired  atomic.Bool // the watchdog did
	ended    atomic.Bool // further calls of the handler are refused

	savepoints atomic.Int64 // how many the handler opened
}

// errEnded refuses to begin after the handler has returned.
var errEnded = fmt.Errorf("%w: postgres: the attempt has ended, and its transaction with it", store.ErrInvalid)

// Begin begins the transaction, at its first call.
func (t *Transaction) Begin(ctx context.Context) error {
	for {
		t.mu.Lock()
		switch {
		case t.closed:
			t.mu.Unlock()
			return errEnded
		case t.begun:
			t.mu.Unlock()
			return nil
		case t.starting == nil:
			return t.first(ctx)
		}
		other := t.starting
		t.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return fmt.Errorf("%w: postgres: begin: %w", store.ErrUnavailable, ctx.Err())
		}
	}
}

// first is Begin for the call that begins the transaction. t.mu is held, and is not while
// the server or a slot is waited for.
func (t *Transaction) first(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.all.deadline())
	defer cancel()
	t.starting, t.giveUp = make(chan struct{}), cancel
	t.mu.Unlock()
	ready := false
	defer func() {
		t.mu.Lock()
		t.begun = ready && !t.closed
		late := ready && t.closed
		close(t.starting)
		t.starting, t.giveUp = nil, nil
		t.mu.Unlock()
		if late {
			t.end()
		}
	}()
	err := t.open(ctx)
	ready = err == nil
	return err
}

// open takes a slot and a connection, and begins the transaction on it, in one round
// trip.
func (t *Transaction) open(ctx context.Context) error {
	s := t.all
	start := time.Now()
	if s.slots != nil && s.slots.Take(ctx, s.slots.Enqueue()) != nil {
		return fmt.Errorf("%w: postgres: begin: no connection for a transaction within %v (all %d in use); give the pool more connections or make handlers faster",
			store.ErrBusy, time.Since(start).Round(time.Millisecond), s.slots.Limit)
	}
	begun := false
	defer func() { // also when a tracer of the application panics
		if !begun {
			t.end()
		}
	}()
	held, err := s.table.Db.Hold(ctx, "begin")
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.held, t.conn = held, held.Conn
	t.watchdog = time.AfterFunc(s.deadline(), func() { t.expire(held) })
	t.mu.Unlock()
	t.prepared = s.table.Sender.On(held.Conn) == wire.Prepared
	if err := t.beginOn(ctx, held.Conn); err != nil {
		s.table.ReportMissing(ctx, err)
		return wire.Fail("begin", err)
	}
	if held.Driver != nil {
		if t.lent, err = sqltx.Lend(held.Driver); err != nil { //nolint:contextcheck // it outlives this call
			return wire.Fail("begin", err)
		}
	}
	begun = true
	return nil
}

// beginOn sends BEGIN and the limits. Where the session lacks the prepared statements, it
// sends them once more without.
func (t *Transaction) beginOn(ctx context.Context, conn *pgx.Conn) error {
	s := t.all
	send := func() error {
		if t.prepared {
			for _, st := range []*wire.Statement{s.statements.begin, s.statements.limits, s.statements.same, s.statements.complete, s.statements.commit} {
				if _, err := wire.Prepare(ctx, conn, st); err != nil {
					return err
				}
			}
		}
		var batch steps
		var process uint32
		batch.add(s.statements.begin, nil)
		batch.add(s.statements.limits, func(row *wire.Row) {
			t.beganAt = row.Timestamp()
			process = uint32(row.Integer()) //nolint:gosec // its bits
		}, []byte(s.timeout))
		err := batch.send(ctx, conn, t.prepared)
		// A pooler invents process IDs. Behind one, the session may lack a statement that was
		// not needed yet.
		t.prepared = t.prepared && conn.PgConn().PID() == process
		return err
	}
	prepared := t.prepared
	err := send()
	if prepared && wire.NotPrepared(err) {
		s.table.Sender.Lost(ctx, conn, err)
		t.prepared = false
		if conn.PgConn().TxStatus() != txIdle {
			if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
				return err
			}
		}
		err = send()
	}
	return err
}

// expire ends the session of a transaction that lasts too long. The server then rolls
// back, and the handler's next statement fails.
func (t *Transaction) expire(held *wire.Held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == held {
		t.expired.Store(true)
		held.Kill()
	}
}

// Close implements [store.Transaction].
func (t *Transaction) Close() (begun bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.ended.Store(true)
	if t.begun && t.lent != nil {
		t.lent.Refuse()
	}
	if t.giveUp != nil {
		t.giveUp()
	}
	return t.begun
}

// Rollback implements [store.Transaction].
func (t *Transaction) Rollback(ctx context.Context) error {
	defer t.end()
	t.watchdog.Stop()
	return t.undo(ctx)
}

// undo rolls back, or closes the connection if that fails.
func (t *Transaction) undo(ctx context.Context) error {
	if t.expired.Load() {
		return nil
	}
	t.takeBack(ctx)
	conn := t.conn
	if conn.IsClosed() || conn.PgConn().TxStatus() == txIdle {
		return nil
	}
	if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
		t.held.Kill()
		return fmt.Errorf("%w: postgres: rollback: %s", store.ErrUnknown, err.Error())
	}
	return nil
}

// takeBack takes the connection back from database/sql. That waits for a statement that
// the handler left running, so that ctx bounds it.
func (t *Transaction) takeBack(ctx context.Context) {
	if t.lent == nil {
		return
	}
	stop := context.AfterFunc(ctx, t.held.Kill)
	defer stop()
	t.lent.Close()
	t.lent = nil
}

// end gives the connection and the slot back. The pool closes a connection that is still
// in a transaction.
func (t *Transaction) end() {
	t.mu.Lock()
	held := t.held
	t.held = nil
	t.mu.Unlock()
	if held != nil {
		t.watchdog.Stop()
		if t.lent != nil {
			held.Kill()
			t.lent.Close()
			t.lent = nil
		}
		held.Release()
	}
	if t.all.slots != nil {
		t.all.slots.Release()
	}
}

// The states of a connection that pgx reports.
const (
	txIdle   = 'I' // no transaction
	txFailed = 'E' // a transaction whose last statement failed
)

func notApplied(why string) error {
	return fmt.Errorf("%w: postgres: complete: %s", store.ErrNotApplied, why)
}

var _ store.Transaction = (*Transaction)(nil)

var errLeaseLost = fmt.Errorf("%w: postgres: complete: another owner has the record, or there is none", store.ErrLeaseLost)

// errEndedByHandler is the error for a misuse that was detected too late to undo it.
var errEndedByHandler = fmt.Errorf("%w: postgres: complete: the handler ended the transaction of its attempt; leave COMMIT and ROLLBACK to the store",
	store.ErrMisconfigured)
