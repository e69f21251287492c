package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
)

// Unknown ends an attempt whose record is in the table, in one statement. The request has
// been validated.
func (t *Table) Unknown(ctx context.Context, r *store.UnknownRequest) error {
	var done bool
	err := t.Run(ctx, "unknown", t.Statements.unknown, func(rows pgx.Rows) error {
		done = rows.Next()
		return nil
	}, r.ID[:], r.Owner[:], EndedOwner(r.Owner), r.Reason)
	if err != nil || done {
		return err
	}
	if _, err := t.Look(ctx, "unknown", r.ID); err != nil {
		return err
	}
	return fmt.Errorf("%w: postgres: unknown: another owner has the record, or there is none", store.ErrLeaseLost)
}

// EndedOwner is what the record of an unknown outcome has in the place of its owner: see
// unknown.sql.
func EndedOwner(owner store.Owner) []byte {
	for i := range owner {
		owner[i] = ^owner[i]
	}
	return owner[:]
}
