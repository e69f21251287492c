// Ent moves money with ent: a client whose driver is the transaction of the request.
// Package db is generated from package schema.
package main

import (
	"context"
	"database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/reprise-go/reprise/examples/sql/ent/db"
	"github.com/reprise-go/reprise/examples/sql/ent/db/account"
	"github.com/reprise-go/reprise/examples/sql/internal/bank"
)

//go:generate go run -mod=mod entgo.io/ent/cmd/ent generate --feature sql/lock,sql/schemaconfig --target ./db ./schema

func main() {
	bank.Main(func(*sql.DB) bank.Move { return move })
}

const inSchema = "reprise_example"

// client returns a client of ent on the transaction of the request. It has no transaction
// of its own to begin, commit or roll back.
func client(ctx context.Context) (*db.Client, error) {
	tx, err := bank.Tx(ctx)
	if err != nil {
		return nil, err
	}
	driver := inTx{entsql.NewDriver(dialect.Postgres, entsql.Conn{ExecQuerier: tx})}
	return db.NewClient(db.Driver(driver), db.AlternateSchema(db.SchemaConfig{Account: inSchema, Transfer: inSchema})), nil
}

// inTx is a driver on a transaction that is open already, and that others end: what ent
// wants in a transaction, such as an update of one row, runs in that one.
type inTx struct{ *entsql.Driver }

// Tx implements dialect.Driver.
func (d inTx) Tx(context.Context) (dialect.Tx, error) { return dialect.NopTx(d), nil }

func move(ctx context.Context, o bank.Order) (id int64, err error) {
	c, err := client(ctx)
	if err != nil {
		return 0, err
	}
	both, err := c.Account.Query().Where(account.IDIn(o.From, o.To)).Order(account.ByID()).ForUpdate().All(ctx)
	if err != nil {
		return 0, err
	}
	if len(both) != 2 {
		return 0, bank.ErrFunds
	}
	taken, err := c.Account.Update().Where(account.ID(o.From), account.BalanceGTE(o.Amount)).AddBalance(-o.Amount).Save(ctx)
	if err != nil {
		return 0, err
	}
	if taken == 0 {
		return 0, bank.ErrFunds
	}
	if err := c.Account.UpdateOneID(o.To).AddBalance(o.Amount).Exec(ctx); err != nil {
		return 0, err
	}
	booked, err := c.Transfer.Create().SetSource(o.From).SetTarget(o.To).SetAmount(o.Amount).SetNote(o.Note).Save(ctx)
	if err != nil {
		return 0, err
	}
	return booked.ID, nil
}
