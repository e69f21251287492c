package leased

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// InTx completes the attempt of ctx in tx, a transaction of its handler.
func InTx(ctx context.Context, tx pgx.Tx, payload []byte) error {
	a, r, err := completionOf(ctx, payload)
	if err != nil {
		return err
	}
	var done bool
	err = tx.QueryRow(ctx, a.store.table.Statements.Complete, a.store.table.Options.ExecMode,
		r.ID[:], r.Owner[:], table.NotNull(r.Payload), table.Microseconds(r.Retention), table.Microseconds(r.Horizon)).Scan(&done)
	return a.completed(&r, done, err)
}

// InSQLTx is inTx for a transaction of database/sql, over pgx's driver.
func InSQLTx(ctx context.Context, tx *sql.Tx, payload []byte) error {
	a, r, err := completionOf(ctx, payload)
	if err != nil {
		return err
	}
	var done bool
	err = tx.QueryRowContext(ctx, a.store.table.Statements.Complete,
		r.ID[:], r.Owner[:], table.NotNull(r.Payload), table.Microseconds(r.Retention), table.Microseconds(r.Horizon)).Scan(&done)
	return a.completed(&r, done, err)
}

// attempt is the value that the context of a handler of the leased store has for its
// attempt.
type attempt struct {
	store *Store
	id    store.ID
	owner store.Owner
}

type leasedKey struct{}

// Bind lets InTx find the attempt.
func (s *Store) Bind(ctx context.Context, id store.ID, owner store.Owner) context.Context {
	return context.WithValue(ctx, leasedKey{}, &attempt{store: s, id: id, owner: owner})
}

// completionOf returns the attempt that ctx belongs to, and its completion.
func completionOf(ctx context.Context, payload []byte) (*attempt, store.CompleteRequest, error) {
	a, ok := ctx.Value(leasedKey{}).(*attempt)
	if !ok {
		if run, found := store.RunContext(ctx); found {
			a, ok = run.Value(leasedKey{}).(*attempt)
		}
	}
	view, running := reprise.AttemptFrom(ctx)
	if !ok || !running {
		return nil, store.CompleteRequest{}, table.Invalid("InTx outside of a handler of the leased store")
	}
	r := store.CompleteRequest{ID: a.id, Owner: a.owner, Payload: payload, Policy: view.Policy()}
	err := r.Validate()
	return a, r, err
}

// completed places the answer to the completion.
func (a *attempt) completed(r *store.CompleteRequest, done bool, err error) error {
	switch {
	case err != nil:
		return wire.Fail("complete", err)
	case !done:
		return fmt.Errorf("%w: postgres: complete: another owner has the record, or there is none; roll back", store.ErrLeaseLost)
	}
	a.store.inTxOwners.add(a.owner, r.Remembered())
	return nil
}

// completedElsewhere reports, for a completion by the engine, whether the owner
// completed the record with another payload in its handler's transaction. ErrLeaseLost
// makes the engine look for the record's owner, and send the stored payload.
func (s *Store) completedElsewhere(ctx context.Context, r *store.CompleteRequest) (bool, error) {
	if !s.inTxOwners.called(r.Owner) {
		return false, nil
	}
	record, err := s.table.Look(ctx, "complete", r.ID)
	if err != nil || record == nil || record.State != store.StateCompleted {
		return false, err
	}
	s.inTxOwners.forget(r.Owner)
	return !bytes.Equal(record.Payload, r.Payload), nil
}
