package reprisepg

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	reprise "github.com/reprise-go/reprise/core"
)

// The lock of a lost COMMIT is waited for within the caller's deadline, and this long where there is none. The margin
// leaves time for the answer.
const (
	settleWait   = 2 * time.Second
	settleMargin = 100 * time.Millisecond
)

// settle finds out whether owner's COMMIT, whose answer was lost, was executed. It takes the lock that the attempt held until its
// transaction ended: only then can the backend not be committing any more, and a statement that begins then sees what it did.
// A server in recovery, which may not have received the commit yet, refuses the transaction.
func (s *TransactionalStore) settle(ctx context.Context, id reprise.ID, owner reprise.Owner) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return undecided(err)
	}
	defer conn.Release()
	unconfirmed(conn.Conn()) // what others left on it
	var (
		batch     pgx.Batch
		committed bool
		tag       pgconn.CommandTag
	)
	batch.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	batch.Queue("SELECT set_config('lock_timeout', $1::text, true)", strconv.FormatInt(lockWait(ctx).Milliseconds(), 10))
	batch.Queue("SELECT pg_advisory_xact_lock($1::bigint)", s.lockKey(id))
	batch.Queue(s.sql.settle, id[:], owner[:]).Query(func(rows pgx.Rows) error {
		committed = rows.Next()
		return nil
	})
	batch.Queue("COMMIT").Exec(func(t pgconn.CommandTag) error { tag = t; return nil })
	_, err = send(ctx, conn.Conn(), &batch)
	switch {
	case err != nil:
		return undecided(err)
	case unconfirmed(conn.Conn()):
		return fmt.Errorf("%w: complete: the wait for the synchronous standby was cancelled", reprise.ErrNotReplicated)
	case tag.String() != "COMMIT":
		return fmt.Errorf("%w: complete: the look at the record was rolled back", reprise.ErrUnknown)
	}
	s.settled(owner)
	if !committed {
		return notApplied("the connection was lost, and the server rolled back")
	}
	return nil
}

// undecided says that it could not be found out whether the COMMIT was executed.
func undecided(err error) error {
	return fmt.Errorf("%w: complete: the answer to COMMIT was lost, and looking for its effect failed: %s", reprise.ErrUnknown, err.Error())
}

// lockWait is how long to wait for the lock.
func lockWait(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return settleWait
	}
	return max(time.Until(deadline)-settleMargin, settleMargin/2)
}
