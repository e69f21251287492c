package serve

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// insertEffect inserts the effect of one run, as [effects] does, in the transaction of
// the attempt where tx finds one. now is the clock of the database.
func insertEffect(db *sql.DB, tx func(context.Context) (*sql.Tx, error), now string) func(context.Context, string) error {
	insert := "INSERT INTO reprise_effects (op, attempt, owner, at) VALUES (?, ?, ?, " + now + ")"
	return func(ctx context.Context, op string) error {
		exec := db.ExecContext
		switch tx, err := tx(ctx); {
		case err == nil:
			exec = tx.ExecContext
		case !errors.Is(err, store.ErrInvalid): // there is a transaction, and it cannot begin
			return fmt.Errorf("effect: %w", err)
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
