package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Complete ends an attempt whose record is in the table, in one statement, or in two if
// the owner has completed it already. The caller has validated the request.
func (t *Table) Complete(ctx context.Context, r *store.CompleteRequest) error {
	var done bool
	err := t.On(ctx, "complete", func(conn *pgx.Conn) (err error) {
		done, err = t.completeOn(ctx, conn, r)
		return err
	})
	if err != nil || done {
		return err
	}
	if _, err := t.Look(ctx, "complete", r.ID); err != nil {
		return err
	}
	return fmt.Errorf("%w: postgres: complete: another owner has the record, or there is none", store.ErrLeaseLost)
}

// completeOn completes r once. The first statement completes a record of the owner that
// is in progress. The second finds one that the owner has completed already: the first
// may not see a change for which it had to wait.
func (t *Table) completeOn(ctx context.Context, conn *pgx.Conn, r *store.CompleteRequest) (done bool, err error) {
	answered := func(*wire.Row) { done = true }
	scan := func(rows pgx.Rows) error { done = rows.Next(); return nil }
	err = t.Ask(ctx, conn, t.Statements.CompleteOwn.Call(answered,
		r.ID[:], r.Owner[:], NotNull(r.Payload), wire.AppendInt8(nil, Microseconds(r.Retention)), wire.AppendInt8(nil, Microseconds(r.Horizon))),
		func() []any { return CompletionArgs(r) }, scan)
	if err != nil || done {
		return done, err
	}
	err = t.Ask(ctx, conn, t.Statements.CompleteAgain.Call(answered, r.ID[:], r.Owner[:]),
		func() []any { return CompletionArgs(r)[:2] }, scan)
	return done, err
}

// CompletionArgs are the parameters of complete_own.sql; complete_again.sql has the first
// two of them.
func CompletionArgs(r *store.CompleteRequest) []any {
	return []any{r.ID[:], r.Owner[:], NotNull(r.Payload), Microseconds(r.Retention), Microseconds(r.Horizon)}
}
