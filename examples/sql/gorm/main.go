// Gorm moves money with GORM: a session on the transaction of the request.
//
//	GOWORK=off go run -C examples/sql ./gorm -postgres-url postgres://localhost/postgres
//	curl -i localhost:8080/transfers -H 'Idempotency-Key: 7c1f' -d '{"from":"alice","to":"bob","amount":5,"note":"lunch"}'
//
//run:long; background until 8080; needs postgres; prints "HTTP/1.1 201"
package main

import (
	"context"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/reprise-go/reprise/examples/sql/internal/bank"
)

func main() { bank.Main(move) }

type account struct {
	ID      string
	Balance int64
}

// TableName implements GORM's Tabler.
func (account) TableName() string { return "reprise_example.accounts" }

type transfer struct {
	ID     int64 `gorm:"primaryKey"`
	Source string
	Target string
	Amount int64
	Note   string
}

// TableName implements GORM's Tabler.
func (transfer) TableName() string { return "reprise_example.transfers" }

// session returns GORM on the transaction of the request. SkipDefaultTransaction, because
// every write is in a transaction already.
func session(ctx context.Context) (*gorm.DB, error) {
	tx, err := bank.Tx(ctx)
	if err != nil {
		return nil, err
	}
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: tx}), &gorm.Config{
		SkipDefaultTransaction: true, DisableAutomaticPing: true, Logger: logger.Discard,
	})
	if err != nil {
		return nil, err
	}
	return db.WithContext(ctx), nil
}

func move(ctx context.Context, o bank.Order) (id int64, err error) {
	db, err := session(ctx)
	if err != nil {
		return 0, err
	}
	var both []account
	err = db.Clauses(clause.Locking{Strength: "NO KEY UPDATE"}).
		Where("id IN ?", []string{o.From, o.To}).Order("id").Find(&both).Error
	if err != nil {
		return 0, err
	}
	take := db.Model(&account{}).Where("id = ? AND balance >= ?", o.From, o.Amount).
		Update("balance", gorm.Expr("balance - ?", o.Amount))
	if take.Error != nil {
		return 0, take.Error
	}
	give := db.Model(&account{}).Where("id = ?", o.To).Update("balance", gorm.Expr("balance + ?", o.Amount))
	if give.Error != nil {
		return 0, give.Error
	}
	if take.RowsAffected == 0 || give.RowsAffected == 0 {
		return 0, bank.ErrFunds
	}
	booked := transfer{Source: o.From, Target: o.To, Amount: o.Amount, Note: o.Note}
	err = db.Create(&booked).Error
	return booked.ID, err
}
