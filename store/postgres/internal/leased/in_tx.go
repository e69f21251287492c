package leased

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// InTx completes the attempt of ctx in tx, a transaction of its handler.
func InTx(ctx context.Context, tx pgx.Tx, payload []byte) error {
	a, r, err := completionOf(ctx, payload)
	if err != nil {
		return err
	}
	return a.complete(&r, func(text string, args ...any) row {
		return tx.QueryRow(ctx, text, append([]any{a.store.table.Options.ExecMode}, args...)...)
	})
}

// InSQLTx is [InTx] for a transaction of database/sql, over pgx's driver.
func InSQLTx(ctx context.Context, tx *sql.Tx, payload []byte) error {
	a, r, err := completionOf(ctx, payload)
	if err != nil {
		return err
	}
	return a.complete(&r, func(text string, args ...any) row { return tx.QueryRowContext(ctx, text, args...) })
}

// attempt identifies an attempt of the leased store. The context of its handler has it.
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
		return nil, store.CompleteRequest{}, table.Invalid("the context has no attempt of the leased store; call InTx in a handler, with the context of its request")
	}
	r := store.CompleteRequest{ID: a.id, Owner: a.owner, Payload: payload, Policy: view.Policy()}
	err := r.Validate()
	return a, r, err
}

// row is the answer of a transaction's QueryRow.
type row interface{ Scan(dest ...any) error }

// complete completes r by query, which executes a statement in the transaction.
func (a *attempt) complete(r *store.CompleteRequest, query func(text string, args ...any) row) error {
	var state int16
	statements, args := &a.store.table.Statements, table.CompletionArgs(r)
	err := query(statements.CompleteOwn.SQL, args...).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) { // pgx.ErrNoRows wraps it
		err = query(statements.Again.SQL, args[0], args[1], args[1]).Scan(&state)
		if err == nil && state == record.Running { // the transaction holds the record now
			err = query(statements.CompleteOwn.SQL, args...).Scan(&state)
		}
		if err == nil && state != record.Completed {
			err = sql.ErrNoRows
		}
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: postgres: complete: another owner has the record, or there is none; roll the transaction back", store.ErrLeaseLost)
	case err != nil:
		return wire.Fail("complete", err)
	}
	a.store.inTxOwners.add(a.owner, r.Remembered())
	return nil
}

// completedElsewhere reports, for a completion by the engine, whether the handler
// completed the record with another payload by InTx. Complete then answers ErrLeaseLost,
// which makes the engine read the record and send the stored payload.
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
