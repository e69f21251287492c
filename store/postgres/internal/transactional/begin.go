package transactional

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// begin claims r. It opens the transaction, tries to take the lock, and then reads the
// record in a statement that sees everything committed before the lock was free: one
// round trip over a pgx pool, two over a *sql.DB. It uses prepared statements only if
// prepared is true. The attempt is nil unless the claim was granted.
func (s *Store) begin(ctx context.Context, r store.ClaimRequest, prepared bool) (a *attempt, result store.ClaimResult, err error) {
	session, err := s.table.Db.Acquire(ctx, "claim")
	if err != nil {
		return nil, store.ClaimResult{}, err
	}
	a = &attempt{
		id: r.ID, owner: r.Owner, fingerprint: r.Fingerprint, policy: r.Policy, description: r.Description,
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
		if a.prepared = prepared && s.table.Sender.On(conn) == wire.Prepared; !a.prepared {
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
		_ = a.rollback(ctx) // if it fails, it closes the connection, which is as good
		result, err := d.AtomicResult("postgres")
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
	// A pooler invents process IDs. Behind one, the session may lack a statement that was
	// not needed yet.
	if err := session.Do(func(conn *pgx.Conn) error {
		a.prepared = a.prepared && conn.PgConn().PID() == process
		return nil
	}); err != nil { // the connection was closed meanwhile, with the transaction
		return a, store.ClaimResult{}, s.failClaim(ctx, a, err)
	}
	if d.Word == record.WordTakeover {
		a.replaced = found.Fence
	}
	granted, result = true, a.result()
	return a, result, nil
}

// failClaim rolls back and classifies the failure of a claim's statements.
func (s *Store) failClaim(ctx context.Context, a *attempt, err error) error {
	s.table.ReportMissing(ctx, err)
	_ = a.rollback(ctx)
	if a.prepared && wire.NotPrepared(err) {
		_ = a.session.Do(func(conn *pgx.Conn) error { s.table.Sender.Lost(ctx, conn, err); return nil })
		return errAdapted
	}
	if s.adapts(err) {
		return errAdapted
	}
	return wire.Fail("claim", err)
}

// beginSQLTx begins the transaction through database/sql, because a handler can only get
// a *sql.Tx that database/sql began. Until stop is called, the transaction ends with ctx;
// stop reports false if it already has.
func (a *attempt) beginSQLTx(ctx context.Context, isolation pgx.TxIsoLevel) (stop func() bool, err error) {
	// database/sql rolls back when the context of a transaction ends. The watchdog has to
	// come first.
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
