package main

import (
	"context"

	"github.com/reprise-go/reprise/examples/sql/queries"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

//go:generate sqlc generate

// withSqlc moves money with the code that sqlc generates for database/sql.
func withSqlc(ctx context.Context, o order) (id int64, err error) {
	tx, err := reprisepg.SQLTx(ctx)
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
		return 0, errFunds
	}
	return q.Record(ctx, queries.RecordParams{Source: o.From, Target: o.To, Amount: o.Amount, Note: o.Note})
}
