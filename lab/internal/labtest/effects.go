package labtest

import (
	"context"
	"database/sql"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance/storetest"
)

// SQLEffects returns the effects of handlers in a table of db that the first use makes,
// written through the transactions that tx finds.
func SQLEffects(tb testing.TB, db *sql.DB, tx func(context.Context) (*sql.Tx, error)) *storetest.Effects {
	tb.Helper()
	table := sync.OnceFunc(func() { Exec(tb, db, "CREATE TABLE suite_effects (n INTEGER NOT NULL)") }) // few cases need it
	exec := func(ctx context.Context, statement string) error {
		tx, err := tx(ctx)
		if err == nil {
			_, err = tx.ExecContext(ctx, statement)
		}
		return err
	}
	return &storetest.Effects{
		Write: func(ctx context.Context) error {
			table()
			return exec(ctx, "INSERT INTO suite_effects VALUES (1)")
		},
		Exec: exec,
		Count: func(tb testing.TB) (n int) {
			tb.Helper()
			table()
			Must(tb, db.QueryRowContext(context.WithoutCancel(tb.Context()), "SELECT count(*) FROM suite_effects").Scan(&n))
			return n
		},
	}
}

// Damage is what a statement sets to damage a row.
var Damage = map[storetest.Corruption]string{
	storetest.UnknownVersion: "version = 2",
	storetest.UnknownState:   "state = 7, payload = NULL",
	storetest.Truncated:      "fingerprint = substr(fingerprint, 1, 31)",
	storetest.WrongType:      "lease_until = 'soon'", // where the type of the column has it
}
