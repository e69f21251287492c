package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
)

// Unknown ends an attempt whose record is in the table, in one statement, or in two if
// that finds no running record of the owner. The caller has validated the request.
func (t *Table) Unknown(ctx context.Context, r *store.UnknownRequest) error {
	done, left := false, record.EndedOwner(r.Owner)
	args := []any{t.Options.ExecMode, r.ID[:], r.Owner[:], left, r.Reason}
	err := t.On(ctx, "unknown", func(conn *pgx.Conn) error {
		err := Query(ctx, conn, t.Statements.unknown, args, func(rows pgx.Rows) error {
			done = rows.Next()
			return nil
		})
		if err == nil && !done {
			_, err = t.again(ctx, conn, r.ID, r.Owner, left)
		}
		return err
	})
	if err != nil || done {
		return err
	}
	if _, err := t.Look(ctx, "unknown", r.ID); err != nil {
		return err
	}
	return fmt.Errorf("%w: postgres: unknown: another owner has the record, or there is none", store.ErrLeaseLost)
}
