package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
)

// Unknown ends an attempt whose record is in the table, in one statement. The caller has
// validated the request.
func (t *Table) Unknown(ctx context.Context, r *store.UnknownRequest) error {
	var done bool
	err := t.Run(ctx, "unknown", t.Statements.unknown, func(rows pgx.Rows) error {
		done = rows.Next()
		return nil
	}, r.ID[:], r.Owner[:], record.EndedOwner(r.Owner), r.Reason)
	if err != nil || done {
		return err
	}
	if _, err := t.Look(ctx, "unknown", r.ID); err != nil {
		return err
	}
	return fmt.Errorf("%w: postgres: unknown: another owner has the record, or there is none", store.ErrLeaseLost)
}
