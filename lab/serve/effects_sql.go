package serve

import (
	"context"
	"database/sql"
	"fmt"

	reprise "github.com/reprise-go/reprise/core"
)

// insertEffect inserts the effect of one run, as [effects] does, in the transaction of
// the attempt where tx finds one. now is the clock of the database.
func insertEffect(db *sql.DB, tx func(context.Context) (*sql.Tx, bool), now string) func(context.Context, string) error {
	insert := "INSERT INTO reprise_effects (op, attempt, owner, at) VALUES (?, ?, ?, " + now + ")"
	return func(ctx context.Context, op string) error {
		exec := db.ExecContext
		if tx, ok := tx(ctx); ok {
			exec = tx.ExecContext
		}
		attempt := 0
		if view, ok := reprise.AttemptFrom(ctx); ok {
			attempt = view.Number()
		}
		if _, err := exec(ctx, insert, op, attempt, ownerFrom(ctx)); err != nil {
			return fmt.Errorf("effect: %w", err)
		}
		return nil
	}
}
