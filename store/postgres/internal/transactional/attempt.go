package transactional

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// attempt is one transaction, from its claim to its end.
type attempt struct {
	id          store.ID
	owner       store.Owner
	fingerprint store.Fingerprint
	policy      store.Policy
	description string
	number      int
	fence       int64
	beganAt     int64 // its transaction, by the server's clock, in µs since 1970
	claimedAt   int64
	replaces    bool  // the claim found a row
	replaced    int64 // fence of the lapsed record that it takes over, or 0
	deadline    time.Time
	limits      bool // its server has transaction_timeout
	prepared    bool // its session has the prepared statements

	session    *wire.Session
	sqlTx      *sql.Tx            // over a *sql.DB: the handler's
	cancelTx   context.CancelFunc // of the context of sqlTx
	stuck      bool               // a panic left a call of database/sql: see inSQL
	savepoints atomic.Int64       // how many the handler opened
	ended      atomic.Bool        // the store refuses further calls of the handler

	bound   atomic.Bool // a handler got its context
	asked   atomic.Bool // a handler got its transaction
	expired atomic.Bool // the watchdog closed the connection

	mu       sync.Mutex
	closed   bool        // session went back to the pool; guarded by mu
	watchdog *time.Timer // closes the connection at the deadline
}

// start arms the watchdog.
func (a *attempt) start() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchdog = time.AfterFunc(time.Until(a.deadline), a.expire)
}

// result is the answer to the claim, and to a repetition of it.
func (a *attempt) result() store.ClaimResult {
	return store.ClaimResult{
		Outcome: store.Claimed, Atomic: true,
		Attempt: a.number, Fence: uint64(a.fence), Remaining: time.Until(a.deadline), //nolint:gosec // fences are positive
	}
}

// over reports whether the deadline of the attempt has passed, so that it can no longer
// commit.
func (a *attempt) over() bool { return a.expired.Load() || !time.Now().Before(a.deadline) }

// expire ends the session of an attempt that lasts too long. The server then rolls
// back; the handler's next statement fails.
func (a *attempt) expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.expired.Store(true)
		a.session.Kill()
	}
}

// stopWatchdog stops the watchdog: from then on, the context of the caller bounds the
// attempt.
func (a *attempt) stopWatchdog() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watchdog != nil {
		a.watchdog.Stop()
	}
}

// rollback undoes the effects. If it fails, it closes the connection, and the server
// undoes them when it notices that.
func (a *attempt) rollback(ctx context.Context) error {
	a.stopWatchdog()
	if a.expired.Load() {
		return nil
	}
	var err error
	if a.sqlTx != nil {
		stop := context.AfterFunc(ctx, a.session.Kill)
		a.inSQL(func() { err = a.sqlTx.Rollback() })
		stop()
		if errors.Is(err, sql.ErrTxDone) {
			err = nil
		}
	} else {
		err = a.session.Do(func(conn *pgx.Conn) error {
			if conn.IsClosed() || conn.PgConn().TxStatus() == txIdle {
				return nil
			}
			_, err := conn.Exec(ctx, "ROLLBACK")
			return err
		})
	}
	if err != nil {
		a.session.Kill()
		return fmt.Errorf("%w: postgres: release: %s", store.ErrUnknown, err.Error())
	}
	return nil
}

// hangUp closes the connection and so ends the session with its locks. The pool does not
// lend it again.
func (a *attempt) hangUp(ctx context.Context) {
	_ = a.session.Do(func(conn *pgx.Conn) error { return conn.Close(ctx) })
}

// close returns the connection to the pool, which closes it unless it is idle.
func (a *attempt) close() {
	a.ended.Store(true)
	if a.sqlTx != nil && !a.stuck {
		_ = a.sqlTx.Rollback() // database/sql waits for it; after a commit it has no effect
	}
	if a.cancelTx != nil {
		a.cancelTx()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watchdog != nil {
		a.watchdog.Stop()
	}
	a.closed = true
	if a.stuck {
		a.session.Kill()
		return
	}
	a.session.Release()
}

// inSQL calls a function of database/sql that begins or ends a transaction. If a tracer
// of the application panics in it, database/sql keeps a lock, and returning the
// connection would wait for that lock forever. stuck then stays true.
func (a *attempt) inSQL(f func()) {
	a.stuck = true
	f()
	a.stuck = false
}

// send sends steps on the connection of an attempt.
func (s *Store) send(ctx context.Context, a *attempt, b *steps) error {
	return a.session.Do(func(conn *pgx.Conn) error { return b.send(ctx, conn, a.prepared) })
}

// The states of a connection that pgx reports.
const (
	txIdle   = 'I' // no transaction
	txFailed = 'E' // a transaction whose last statement failed
)
