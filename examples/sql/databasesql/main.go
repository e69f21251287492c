// Databasesql moves money with database/sql only.
//
//	GOWORK=off go run -C examples/sql ./databasesql -postgres-url postgres://localhost/postgres
//	curl -i localhost:8080/transfers -H 'Idempotency-Key: 7c1f' -d '{"from":"alice","to":"bob","amount":5,"note":"lunch"}'
//
//run:background until 8080; needs postgres; prints "HTTP/1.1 201"
package main

import (
	"context"

	"github.com/reprise-go/reprise/examples/sql/internal/bank"
)

func main() { bank.Main(move) }

func move(ctx context.Context, o bank.Order) (id int64, err error) {
	tx, err := bank.Tx(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := tx.ExecContext(ctx, bank.Lock, o.From, o.To); err != nil {
		return 0, err
	}
	for _, step := range []struct{ sql, account string }{{bank.Take, o.From}, {bank.Give, o.To}} {
		result, err := tx.ExecContext(ctx, step.sql, step.account, o.Amount)
		if err != nil {
			return 0, err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return 0, bank.ErrFunds
		}
	}
	err = tx.QueryRowContext(ctx, bank.Record, o.From, o.To, o.Amount, o.Note).Scan(&id)
	return id, err
}
