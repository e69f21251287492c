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
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// attempt is one transaction, from its claim to its end.
type attempt struct {
	id          store.ID
	owner       store.Owner
	fingerprint store.Fingerprint
	label       string
	number      int
	fence       int64
	beganAt     int64 // its transaction, by the server's clock, in µs since 1970
	claimedAt   int64
	replaces    bool  // whether the claim saw a row
	replaced    int64 // fence of the lapsed record that it takes over, or 0
	deadline    time.Time
	limits      bool // its server can limit transactions
	prepared    bool // its session has the prepared statements

	session    *wire.Session
	sqlTx      *sql.Tx            // over a *sql.DB: the handler's
	cancelTx   context.CancelFunc // of the context of sqlTx
	stuck      bool               // database/sql was left by a panic: see inSQL
	savepoints atomic.Int64       // how many the handler opened
	ended      atomic.Bool        // the store refuses whatever the handler still does with it

	expired atomic.Bool // the watchdog closed the connection

	mu       sync.Mutex
	closed   bool        // session went back to the pool; guarded by mu
	watchdog *time.Timer // closes the connection at the deadline
}

// begin claims r. It opens the transaction, tries the lock and then, in a statement that
// sees everything that was committed before the lock was free, reads the record: one
// round trip over a pgx pool, two over a *sql.DB. The attempt is nil unless the claim was
// granted.
func (s *Store) begin(ctx context.Context, r store.ClaimRequest) (a *attempt, result store.ClaimResult, err error) {
	session, err := s.table.Db.Acquire(ctx, "claim")
	if err != nil {
		return nil, store.ClaimResult{}, err
	}
	a = &attempt{
		id: r.ID, owner: r.Owner, fingerprint: r.Fingerprint, label: r.Label,
		session: session, deadline: time.Now().Add(s.table.Options.TxTimeout),
	}
	granted := false
	defer func() { // also when a tracer of the application panics
		if !granted {
			a.close()
			a = nil
		}
	}()
	err = session.Do(func(conn *pgx.Conn) error {
		a.limits = limitsTransactions(conn.PgConn().ParameterStatus("server_version"))
		if a.prepared = s.table.Sender.On(conn) == wire.Prepared; !a.prepared {
			return nil
		}
		return s.prepareAttempt(ctx, conn)
	})
	var batch steps
	switch {
	case err != nil:
		return a, store.ClaimResult{}, s.failClaim(ctx, a, err)
	case session.SQL == nil:
		batch.add(s.statements.begin, nil)
	default:
		stop, beginErr := a.beginSQLTx(ctx, s.table.Options.Isolation)
		if beginErr != nil {
			return a, store.ClaimResult{}, wire.Fail("claim", beginErr)
		}
		defer func() {
			if !stop() && granted { // ctx ended, and database/sql rolls back
				granted, result, err = false, store.ClaimResult{}, wire.Fail("claim", ctx.Err())
			}
		}()
	}
	var (
		locked  bool
		process uint32
		found   table.Seen
	)
	s.addOpen(&batch, a, &locked, &process)
	batch.add(s.table.Statements.Seen, found.ReadAttempt, r.ID[:])
	if err := s.send(ctx, a, &batch); err != nil {
		return a, store.ClaimResult{}, s.failClaim(ctx, a, err)
	}
	d := found.Decide(&r)
	switch {
	case found.Standby:
		_ = a.rollback(ctx)
		return a, store.ClaimResult{}, errStandby
	case !d.Claimable():
		_ = a.rollback(ctx) // where it fails, the connection is closed, which is as good
		result, err := d.AtomicResult()
		return a, result, err
	case !locked && s.isUndecided(r.Owner):
		_ = a.rollback(ctx)
		return a, store.ClaimResult{}, fmt.Errorf("%w: postgres: claim: an earlier claim of this owner may still hold the lock", store.ErrUnknown)
	case !locked:
		_ = a.rollback(ctx)
		return a, store.ClaimResult{Outcome: store.InProgress}, nil
	}
	a.number, a.fence, a.replaces = d.Attempt, d.Fence, found.Found
	a.beganAt, a.claimedAt = found.At, found.Clock
	// A pooler numbers its sessions itself. This one may have no statement that
	// was not needed yet.
	_ = session.Do(func(conn *pgx.Conn) error {
		a.prepared = a.prepared && conn.PgConn().PID() == process
		return nil
	})
	if d.Word == table.WordTakeover {
		a.replaced = found.Fence
	}
	granted, result = true, a.result()
	return a, result, nil
}

// failClaim rolls back and classifies the failure of a claim's statements.
func (s *Store) failClaim(ctx context.Context, a *attempt, err error) error {
	s.table.ReportMissing(ctx, err)
	_ = a.rollback(ctx)
	if s.adapts(ctx, err, a.prepared) {
		return errAdapted
	}
	return wire.Fail("claim", err)
}

// beginSQLTx begins the transaction through database/sql, which hands the handler no
// other transaction than one that it began itself. Until stop is called the transaction
// ends with ctx; stop reports whether it has not.
func (a *attempt) beginSQLTx(ctx context.Context, isolation pgx.TxIsoLevel) (stop func() bool, err error) {
	// database/sql rolls back when the context of a transaction ends. The
	// watchdog comes first.
	txCtx, cancel := context.WithDeadline(context.WithoutCancel(ctx), a.deadline.Add(time.Minute))
	a.cancelTx = cancel
	stop = context.AfterFunc(ctx, cancel)
	a.inSQL(func() {
		a.sqlTx, err = a.session.SQL.BeginTx(txCtx, &sql.TxOptions{Isolation: sqlIsolation(isolation)})
	})
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

func sqlIsolation(level pgx.TxIsoLevel) sql.IsolationLevel {
	switch level {
	case pgx.RepeatableRead:
		return sql.LevelRepeatableRead
	case pgx.Serializable:
		return sql.LevelSerializable
	default:
		return sql.LevelReadCommitted
	}
}

// start arms the watchdog.
func (a *attempt) start() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchdog = time.AfterFunc(time.Until(a.deadline), a.expire)
}

// result is the answer to the claim, and to its repetition.
func (a *attempt) result() store.ClaimResult {
	return store.ClaimResult{
		Outcome: store.Claimed, Atomic: true,
		Attempt: a.number, Fence: uint64(a.fence), Remaining: time.Until(a.deadline), //nolint:gosec // fences are positive
	}
}

// over reports whether the attempt cannot commit any more, because its time is up.
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

// stopWatchdog leaves the deadline to the caller's context.
func (a *attempt) stopWatchdog() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watchdog != nil {
		a.watchdog.Stop()
	}
}

// rollback undoes the effects. Where it fails the connection is closed, and the server
// undoes them when it notices.
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

// close gives the connection back to the pool, which closes it unless it is idle.
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

// inSQL calls a function of database/sql that begins or ends a transaction. Where a
// tracer of the application panics in it, database/sql keeps a lock, and its connection
// cannot be given back: that would wait for ever.
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
