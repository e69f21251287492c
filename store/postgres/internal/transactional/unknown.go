package transactional

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Unknown implements [store.Store]: it rolls the effects of the attempt back and commits
// the record alone, as Complete does with DiscardEffects, and with the same errors. The
// lock of the attempt is held throughout, so that no other attempt begins in between.
// There are two exceptions. A transaction in which a statement failed accepts only
// ROLLBACK, and the lock is then free for two statements of the same batch, which is long
// enough for one of many simultaneous retries. A transaction that was lost with its
// connection, or that the handler ended, has no lock. If another process has taken the
// lock by then, or has completed the record, the error is ErrNotApplied: no record says
// that the outcome is unknown, and that other attempt decides.
func (s *Store) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	a := s.take(r.ID, r.Owner)
	if a == nil {
		if s.isUndecided(r.Owner) {
			return s.findCommit(ctx, r.ID, r.Owner, record.EndedOwner(r.Owner))
		}
		return s.table.Unknown(ctx, &r)
	}
	return s.finish(ctx, a, ending{
		CompleteRequest: store.CompleteRequest{ID: r.ID, Owner: r.Owner, Policy: a.policy, DiscardEffects: true},
		reason:          r.Reason,
	})
}

// commitElsewhere commits the record of an attempt that has lost its transaction, on
// another connection. It takes the lock before it sends the COMMIT, so that findCommit
// can find out about a lost answer.
func (s *Store) commitElsewhere(ctx context.Context, a *attempt, r *ending) error {
	session, err := s.table.Db.Acquire(ctx, "unknown")
	if err != nil {
		return err
	}
	defer session.Release()
	return session.Do(func(conn *pgx.Conn) error {
		wire.Unconfirmed(conn) // forget the mark of earlier statements
		var lock, batch steps
		s.addTakeLock(ctx, &lock, a.id)
		if err := lock.send(ctx, conn, false); err != nil {
			return notApplied(err.Error()) // COMMIT was not sent
		}
		s.addKeep(&batch, a, r)
		kept := len(batch.calls)
		batch.add(s.statements.commit, nil)
		err := batch.send(ctx, conn, false)
		if wire.Unconfirmed(conn) {
			return table.NotReplicated("unknown")
		}
		return failCommit(err, batch.done, 0, kept)
	})
}

// ending is how an attempt ends in its transaction.
type ending struct {
	store.CompleteRequest

	reason string // why the outcome is unknown; empty for a response
}

// owner is the owner in the record that the attempt leaves.
func (e *ending) owner() []byte {
	if e.reason != "" {
		return record.EndedOwner(e.Owner)
	}
	return e.Owner[:]
}
