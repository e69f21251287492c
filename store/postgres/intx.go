package reprisepg

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// InTx completes the operation of the handler with this context inside tx, a
// transaction of the handler's own on the database of the [Store]. The payload becomes
// the answer to every retry exactly when tx commits, together with whatever else was
// written in tx: exactly-once effects, with the connection held only for as long as the
// handler needs its transaction. For a handler behind the package protocol,
// protocol.Payload makes the payload of a response.
//
// Call it once, as the last statement before Commit, and roll back after any error.
// ErrLeaseLost says that another attempt owns the operation: its effects are to stay,
// and those of tx are not. ErrInvalid says that ctx has no attempt of a [Store].
//
// From then until the end of tx the record is locked, so that nobody takes the
// operation over, however long the commit takes, and duplicates are answered InProgress
// at once. The client of this attempt gets the stored response, also where the handler
// writes another one. A COMMIT whose answer is lost may have been executed: return an
// error then, and the client's retry finds out.
//
// In a transaction stricter than READ COMMITTED a renewal of the lease makes InTx fail
// with ErrUnavailable, as any concurrent update would.
func InTx(ctx context.Context, tx pgx.Tx, payload []byte) error {
	a, r, err := completionOf(ctx, payload)
	if err != nil {
		return err
	}
	var done bool
	err = tx.QueryRow(ctx, a.store.sql.complete, a.store.config.ExecMode,
		r.ID[:], r.Owner[:], notNull(r.Payload), microseconds(r.Retention)).Scan(&done)
	return a.completed(&r, done, err)
}

// InSQLTx is [InTx] for a transaction of database/sql, over pgx's driver.
func InSQLTx(ctx context.Context, tx *sql.Tx, payload []byte) error {
	a, r, err := completionOf(ctx, payload)
	if err != nil {
		return err
	}
	var done bool
	err = tx.QueryRowContext(ctx, a.store.sql.complete,
		r.ID[:], r.Owner[:], notNull(r.Payload), microseconds(r.Retention)).Scan(&done)
	return a.completed(&r, done, err)
}

// leasedAttempt is what the context of a handler of the leased store knows of its
// attempt.
type leasedAttempt struct {
	store *Store
	id    store.ID
	owner store.Owner
}

type leasedKey struct{}

// Bind implements [store.ContextBinder]: it lets [InTx] find the attempt.
func (s *Store) Bind(ctx context.Context, id store.ID, owner store.Owner) context.Context {
	return context.WithValue(ctx, leasedKey{}, &leasedAttempt{store: s, id: id, owner: owner})
}

// completionOf returns the attempt that ctx belongs to, and its completion.
func completionOf(ctx context.Context, payload []byte) (*leasedAttempt, store.CompleteRequest, error) {
	a, ok := ctx.Value(leasedKey{}).(*leasedAttempt)
	if !ok {
		if run, found := store.RunContext(ctx); found {
			a, ok = run.Value(leasedKey{}).(*leasedAttempt)
		}
	}
	view, running := reprise.AttemptFrom(ctx)
	if !ok || !running {
		return nil, store.CompleteRequest{}, invalid("InTx outside of a handler of the leased store")
	}
	r := store.CompleteRequest{ID: a.id, Owner: a.owner, Payload: payload, Retention: view.Retention()}
	err := r.Validate()
	return a, r, err
}

// completed places the answer to the completion.
func (a *leasedAttempt) completed(r *store.CompleteRequest, done bool, err error) error {
	switch {
	case err != nil:
		return fail("complete", err)
	case !done:
		return fmt.Errorf("%w: postgres: complete: another owner has the record, or there is none; roll back", store.ErrLeaseLost)
	}
	a.store.completing.add(a.owner, r.Retention)
	return nil
}

// completedElsewhere reports, for a completion by the engine, whether the owner
// completed the record with another payload in a transaction of its own. ErrLeaseLost
// makes the engine ask who has the record, and send what is in it.
func (s *Store) completedElsewhere(ctx context.Context, r *store.CompleteRequest) (bool, error) {
	if !s.completing.called(r.Owner) {
		return false, nil
	}
	record, err := s.look(ctx, "complete", r.ID)
	if err != nil || record == nil || record.State != store.StateCompleted {
		return false, err
	}
	s.completing.forget(r.Owner)
	return !bytes.Equal(record.Payload, r.Payload), nil
}
