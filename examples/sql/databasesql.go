package main

import (
	"context"

	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// record is the last step of a transfer.
const record = `INSERT INTO reprise_example.transfers (source, target, amount, note) VALUES ($1, $2, $3, $4) RETURNING id`

// withSQL moves money with database/sql only. Both accounts are locked in one order, so
// that two transfers in opposite directions cannot block each other.
func withSQL(ctx context.Context, o order) (id int64, err error) {
	tx, err := reprisepg.SQLTx(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := tx.ExecContext(ctx, `SELECT id FROM reprise_example.accounts WHERE id IN ($1, $2) ORDER BY id FOR NO KEY UPDATE`, o.From, o.To); err != nil {
		return 0, err
	}
	for _, step := range []struct{ sql, account string }{
		{`UPDATE reprise_example.accounts SET balance = balance - $2 WHERE id = $1 AND balance >= $2`, o.From},
		{`UPDATE reprise_example.accounts SET balance = balance + $2 WHERE id = $1`, o.To},
	} {
		result, err := tx.ExecContext(ctx, step.sql, step.account, o.Amount)
		if err != nil {
			return 0, err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return 0, errFunds
		}
	}
	err = tx.QueryRowContext(ctx, record, o.From, o.To, o.Amount, o.Note).Scan(&id)
	return id, err
}
