package transactional

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// findCommit waits for the lock until lostCommitMargin before the caller's deadline,
// which leaves time for the answer, or for lostCommitWait if there is no deadline.
const (
	lostCommitWait   = 2 * time.Second
	lostCommitMargin = 100 * time.Millisecond
)

// findCommit finds out whether owner's COMMIT, whose answer was lost, was executed: if
// so, the owner of the record is recorded. It first takes the lock that the attempt held
// until its transaction ended: once it has the lock, the COMMIT is no longer under way,
// and the next statement sees its result. A server in recovery, which may not have
// received the commit yet, refuses the transaction.
func (s *Store) findCommit(ctx context.Context, id store.ID, owner store.Owner, recorded []byte) error {
	session, err := s.table.Db.Acquire(ctx, "complete")
	if err != nil {
		return undecided(err)
	}
	defer session.Release()
	var (
		batch     steps
		committed bool
		confirmed = true
	)
	s.addTakeLock(ctx, &batch, id)
	batch.add(s.statements.committed, func(*wire.Row) { committed = true }, id[:], recorded)
	batch.add(s.statements.commit, nil)
	err = session.Do(func(conn *pgx.Conn) error {
		wire.Unconfirmed(conn) // forget the mark of earlier statements
		err := batch.send(ctx, conn, false)
		confirmed = !wire.Unconfirmed(conn)
		return err
	})
	switch {
	case err != nil:
		return undecided(err)
	case !confirmed:
		return table.NotReplicated("complete")
	case batch.tag.String() != "COMMIT":
		return fmt.Errorf("%w: postgres: complete: the transaction that looked for the record was rolled back", store.ErrUnknown)
	}
	s.setDecided(owner)
	if !committed {
		return notApplied("the connection was lost, and the server rolled back")
	}
	return nil
}

// addTakeLock adds the steps that begin a transaction and wait for the lock of an
// attempt. The transaction is READ COMMITTED, so that each later statement sees every
// earlier commit.
func (s *Store) addTakeLock(ctx context.Context, b *steps, id store.ID) {
	b.add(s.statements.beginLook, nil)
	b.add(s.statements.waitForLock, nil, []byte(strconv.FormatInt(lockWait(ctx).Milliseconds(), 10)+"ms"))
	b.add(s.statements.takeLock, nil, wire.AppendInt8(nil, s.lockKey(id)))
}

// undecided is the error of findCommit when it cannot find out whether the COMMIT was
// executed.
func undecided(err error) error {
	return fmt.Errorf("%w: postgres: complete: the answer to COMMIT was lost, and its result could not be found out: %s", store.ErrUnknown, err.Error())
}

// lockWait is how long to wait for the lock.
func lockWait(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return lostCommitWait
	}
	return max(time.Until(deadline)-lostCommitMargin, lostCommitMargin/2)
}
