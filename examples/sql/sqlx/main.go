// Sqlx moves money with sqlx: a sqlx.Tx around the transaction of the request.
package main

import (
	"context"
	"database/sql"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"github.com/reprise-go/reprise/examples/sql/internal/bank"
)

func main() {
	bank.Main(func(*sql.DB) bank.Move { return move })
}

var mapper = reflectx.NewMapperFunc("db", strings.ToLower)

type account struct {
	ID      string
	Balance int64
}

func move(ctx context.Context, o bank.Order) (id int64, err error) {
	own, err := bank.Tx(ctx)
	if err != nil {
		return 0, err
	}
	tx := &sqlx.Tx{Tx: own, Mapper: mapper}

	var both []account
	err = tx.SelectContext(ctx, &both,
		`SELECT id, balance FROM reprise_example.accounts WHERE id IN ($1, $2) ORDER BY id FOR NO KEY UPDATE`, o.From, o.To)
	if err != nil {
		return 0, err
	}
	balances := map[string]int64{}
	for _, a := range both {
		balances[a.ID] = a.Balance
	}
	if len(both) != 2 || balances[o.From] < o.Amount {
		return 0, bank.ErrFunds
	}
	if _, err := tx.ExecContext(ctx, bank.Take, o.From, o.Amount); err != nil {
		return 0, err
	}
	if _, err := tx.ExecContext(ctx, bank.Give, o.To, o.Amount); err != nil {
		return 0, err
	}
	err = tx.GetContext(ctx, &id, bank.Record, o.From, o.To, o.Amount, o.Note)
	return id, err
}
