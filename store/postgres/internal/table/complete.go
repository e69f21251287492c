package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Complete ends an attempt whose record is in the table, in one statement. The
// request has been validated.
func (t *Table) Complete(ctx context.Context, r *store.CompleteRequest) error {
	var done bool
	err := t.On(ctx, "complete", func(conn *pgx.Conn) (err error) {
		done, err = t.completeOn(ctx, conn, r)
		return err
	})
	if err != nil || done {
		return err
	}
	// A new statement: the one above may not see the change that it waited for.
	if _, err := t.Look(ctx, "complete", r.ID); err != nil {
		return err
	}
	return fmt.Errorf("%w: postgres: complete: another owner has the record, or there is none", store.ErrLeaseLost)
}

// completeOn completes r once. Where statements are prepared, one statement completes
// every record that is in progress; the function reports the state of another.
func (t *Table) completeOn(ctx context.Context, conn *pgx.Conn, r *store.CompleteRequest) (done bool, err error) {
	if t.Sender.On(conn) == wire.Prepared {
		err := wire.Send(ctx, conn, true, t.Statements.completeOwn.Call(
			func(*wire.Row) { done = true },
			r.ID[:], r.Owner[:], NotNull(r.Payload), wire.AppendInt8(nil, Microseconds(r.Retention)), wire.AppendInt8(nil, Microseconds(r.Horizon))))
		switch {
		case wire.NotPrepared(err):
			t.Sender.Lost(ctx, conn, err)
		case err != nil || done:
			return done, err
		}
	}
	err = Query(ctx, conn, t.Statements.Complete, []any{
		t.Options.ExecMode, r.ID[:], r.Owner[:], NotNull(r.Payload), Microseconds(r.Retention), Microseconds(r.Horizon),
	}, func(rows pgx.Rows) error {
		rows.Next()
		return rows.Scan(&done)
	})
	return done, err
}
