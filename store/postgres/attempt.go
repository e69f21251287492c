package reprisepg

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	reprise "github.com/reprise-go/reprise/core"
)

// attempt is one transaction, from its claim to its end.
type attempt struct {
	id          reprise.ID
	owner       reprise.Owner
	fingerprint reprise.Fingerprint
	number      int
	fence       int64
	replaced    int64 // fence of the lapsed record that it takes over, or 0
	deadline    time.Time

	conn  *pgxpool.Conn
	tx    *handlerTx
	ended atomic.Bool // what the handler still holds of tx is refused

	expired atomic.Bool // the watchdog closed the connection

	mu       sync.Mutex
	closed   bool        // conn went back to the pool; guarded by mu
	watchdog *time.Timer // closes the connection at the deadline
}

// begin claims r in one round trip: it opens the transaction, tries the lock and then, in a statement that sees everything that
// was committed before the lock was free, reads the record. The attempt is nil unless the claim was granted.
func (s *TransactionalStore) begin(ctx context.Context, r reprise.ClaimRequest) (*attempt, reprise.ClaimResult, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, reprise.ClaimResult{}, failAcquire("claim", err)
	}
	a := &attempt{id: r.ID, owner: r.Owner, fingerprint: r.Fingerprint, conn: conn, deadline: time.Now().Add(s.config.TxTimeout)}
	var (
		locked bool
		v      verdict
		batch  pgx.Batch
	)
	batch.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	batch.Queue(guardSQL(conn.Conn().PgConn()), s.lockKey(r.ID), strconv.FormatInt(s.config.TxTimeout.Milliseconds(), 10)).
		QueryRow(func(row pgx.Row) error { return row.Scan(&locked, nil) })
	batch.Queue(s.sql.attempt, r.ID[:], r.Owner[:], r.Fingerprint[:], r.Takeover, r.MaxAttempts).
		QueryRow(func(row pgx.Row) error {
			return row.Scan(&v.word, &v.attempt, &v.fence, &v.leaseLeft, &v.payload, &a.replaced)
		})
	batch.Queue("SAVEPOINT " + savepoint)
	results, err := send(ctx, conn.Conn(), &batch)
	if err != nil {
		conn.Release() // and, as it is not idle, closes it
		return nil, reprise.ClaimResult{}, fail("claim", err)
	}
	a.number, a.fence = v.attempt, v.fence
	a.tx = &handlerTx{Tx: results.Tx(), ended: &a.ended, managed: true}

	switch {
	case !v.claimable():
		s.dismiss(ctx, a)
		result, err := v.answerAtomic()
		return nil, result, err
	case !locked && s.inDoubt(r.Owner):
		s.dismiss(ctx, a)
		return nil, reprise.ClaimResult{}, fmt.Errorf("%w: claim: an earlier claim of this owner may still hold the lock", reprise.ErrUnknown)
	case !locked:
		s.dismiss(ctx, a)
		return nil, reprise.ClaimResult{Outcome: reprise.InProgress}, nil
	}
	a.watchdog = time.AfterFunc(time.Until(a.deadline), a.expire)
	s.mu.Lock()
	s.attempts[a.owner] = a
	delete(s.doubts, a.owner)
	s.mu.Unlock()
	granted := a.result()
	return a, granted, nil
}

// dismiss ends a transaction that turned out to be nobody's attempt.
func (s *TransactionalStore) dismiss(ctx context.Context, a *attempt) {
	_ = a.tx.Tx.Rollback(ctx) // where it fails, the connection is closed, which is as good
	a.conn.Release()
}

// claimReadOnly answers a claim for which no transaction is free, as far as reading the record can answer it.
func (s *TransactionalStore) claimReadOnly(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	var v verdict
	err := s.run(ctx, "claim", s.sql.attempt, func(rows pgx.Rows) error {
		if !rows.Next() {
			return errLostRace
		}
		return rows.Scan(&v.word, &v.attempt, &v.fence, &v.leaseLeft, &v.payload, nil)
	}, r.ID[:], r.Owner[:], r.Fingerprint[:], r.Takeover, r.MaxAttempts)
	switch {
	case err != nil:
		return reprise.ClaimResult{}, err
	case v.claimable():
		return reprise.ClaimResult{}, fmt.Errorf("%w: claim: all %d transactions are in use", reprise.ErrUnavailable, cap(s.slots))
	}
	return v.answerAtomic()
}

// result is the answer to the claim, and to its repetition.
func (a *attempt) result() reprise.ClaimResult {
	return reprise.ClaimResult{
		Outcome: reprise.Claimed, Atomic: true,
		Attempt: a.number, Fence: uint64(a.fence), Remaining: time.Until(a.deadline), //nolint:gosec // a sequence starts at 1
	}
}

// expire ends the session of an attempt that lasts too long. The server then rolls back; the handler's next statement fails.
func (a *attempt) expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.expired.Store(true)
		_ = a.conn.Conn().PgConn().Conn().Close()
	}
}

// close gives the connection back to the pool, which closes it unless it is idle.
func (a *attempt) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchdog.Stop()
	a.closed = true
	a.ended.Store(true)
	a.conn.Release()
}

// savepoint is what a kept failure rolls back to. That it is gone shows that the handler ended the transaction.
const savepoint = "reprise_attempt"

// guardSQL takes the lock of the attempt and sets the limits at which the server ends the session of an owner that is paused.
// PostgreSQL 17 can also bound the transaction as a whole.
func guardSQL(conn *pgconn.PgConn) string {
	const guard = "SELECT pg_try_advisory_xact_lock($1::bigint), set_config('statement_timeout', $2::text, true)" +
		" || set_config('idle_in_transaction_session_timeout', $2::text, true)"
	if serverMajor(conn.ParameterStatus("server_version")) >= 17 {
		return guard + " || set_config('transaction_timeout', $2::text, true)"
	}
	return guard
}

// serverMajor is the first number of a server's version, or 0.
func serverMajor(version string) int {
	end := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(version)
	}
	major, _ := strconv.Atoi(version[:end])
	return major
}
