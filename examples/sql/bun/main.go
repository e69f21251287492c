// Bun moves money with bun: its queries take the transaction of the request as their
// connection.
package main

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/reprise-go/reprise/examples/sql/internal/bank"
)

func main() {
	bank.Main(func(db *sql.DB) bank.Move { return service{bun.NewDB(db, pgdialect.New())}.move })
}

type service struct{ db *bun.DB }

type account struct {
	bun.BaseModel `bun:"table:reprise_example.accounts"`

	ID      string `bun:",pk"`
	Balance int64
}

type transfer struct {
	bun.BaseModel `bun:"table:reprise_example.transfers"`

	ID     int64 `bun:",pk,autoincrement"`
	Source string
	Target string
	Amount int64
	Note   string
}

func (s service) move(ctx context.Context, o bank.Order) (id int64, err error) {
	tx, err := bank.Tx(ctx)
	if err != nil {
		return 0, err
	}
	var both []account
	err = s.db.NewSelect().Conn(tx).Model(&both).
		Where("id IN (?, ?)", o.From, o.To).Order("id").For("NO KEY UPDATE").Scan(ctx)
	if err != nil {
		return 0, err
	}
	if len(both) != 2 {
		return 0, bank.ErrFunds
	}
	for i := range both {
		a := &both[i]
		if a.ID == o.From {
			a.Balance -= o.Amount
		} else {
			a.Balance += o.Amount
		}
		if a.Balance < 0 {
			return 0, bank.ErrFunds
		}
		if _, err := s.db.NewUpdate().Conn(tx).Model(a).Column("balance").WherePK().Exec(ctx); err != nil {
			return 0, err
		}
	}
	booked := transfer{Source: o.From, Target: o.To, Amount: o.Amount, Note: o.Note}
	_, err = s.db.NewInsert().Conn(tx).Model(&booked).Returning("id").Exec(ctx)
	return booked.ID, err
}
