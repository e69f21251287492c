package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Complete ends an attempt whose record is in the table, in one statement, or in two if
// that finds no running record of the owner. The caller has validated the request.
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
// is in progress. Where it completes none, the second finds out why.
func (t *Table) completeOn(ctx context.Context, conn *pgx.Conn, r *store.CompleteRequest) (done bool, err error) {
	err = t.Ask(ctx, conn, t.Statements.CompleteOwn.Call(func(*wire.Row) { done = true },
		r.ID[:], r.Owner[:], NotNull(r.Payload), wire.AppendInt8(nil, Microseconds(r.Retention)), wire.AppendInt8(nil, Microseconds(r.Horizon))),
		func() []any { return CompletionArgs(r) },
		func(rows pgx.Rows) error { done = rows.Next(); return nil })
	if err != nil || done {
		return done, err
	}
	return t.again(ctx, conn, r.ID, r.Owner, r.Owner[:])
}

// again reports, for a call of owner that ended no record, whether the owner has
// completed the record. The error is ErrLostRace if the record still runs: the statement
// before it judged by a snapshot that is older than a renewal. left is the owner that an
// earlier call of the same owner may have left in the record.
func (t *Table) again(ctx context.Context, conn *pgx.Conn, id store.ID, owner store.Owner, left []byte) (completed bool, err error) {
	var state int16
	err = t.Ask(ctx, conn, t.Statements.Again.Call(func(row *wire.Row) { state = row.Smallint() }, id[:], owner[:], left),
		func() []any { return []any{id[:], owner[:], left} },
		func(rows pgx.Rows) error {
			if !rows.Next() {
				return nil
			}
			return rows.Scan(&state)
		})
	if err == nil && state == record.Running {
		err = ErrLostRace
	}
	return state == record.Completed, err
}

// CompletionArgs are the parameters of complete_own.sql.
func CompletionArgs(r *store.CompleteRequest) []any {
	return []any{r.ID[:], r.Owner[:], NotNull(r.Payload), Microseconds(r.Retention), Microseconds(r.Horizon)}
}
