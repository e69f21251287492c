// Sqlc moves money with the code that sqlc generates for database/sql.
//
//	GOWORK=off go run -C examples/sql ./sqlc -postgres-url postgres://localhost/postgres
//	curl -i localhost:8080/transfers -H 'Idempotency-Key: 7c1f' -d '{"from":"alice","to":"bob","amount":5,"note":"lunch"}'
//
//run:background until 8080; needs postgres; prints "HTTP/1.1 201"
package main

import (
	"context"

	"github.com/reprise-go/reprise/examples/sql/internal/bank"
	"github.com/reprise-go/reprise/examples/sql/sqlc/queries"
)

//go:generate sqlc generate

func main() { bank.Main(move) }

func move(ctx context.Context, o bank.Order) (id int64, err error) {
	tx, err := bank.Tx(ctx)
	if err != nil {
		return 0, err
	}
	q := queries.New(tx)
	if err := q.Lock(ctx, queries.LockParams{Source: o.From, Target: o.To}); err != nil {
		return 0, err
	}
	taken, err := q.Take(ctx, queries.TakeParams{Source: o.From, Amount: o.Amount})
	if err != nil {
		return 0, err
	}
	given, err := q.Give(ctx, queries.GiveParams{Target: o.To, Amount: o.Amount})
	if err != nil {
		return 0, err
	}
	if taken == 0 || given == 0 {
		return 0, bank.ErrFunds
	}
	return q.Record(ctx, queries.RecordParams{Source: o.From, Target: o.To, Amount: o.Amount, Note: o.Note})
}
