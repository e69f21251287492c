package main

import (
	"context"
	"database/sql"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// withGorm moves money with GORM: a session on the transaction of the request.
func withGorm(pool *sql.DB) (move, error) {
	db, err := openGorm(pool, false)
	return func(ctx context.Context, o order) (int64, error) {
		s, err := session(ctx, db)
		if err != nil {
			return 0, err
		}
		return book(s, o)
	}, err
}

// openGorm opens GORM over the pool of the store. One handle serves the process.
func openGorm(pool *sql.DB, prepare bool) (*gorm.DB, error) {
	return gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard, PrepareStmt: prepare})
}

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

// session returns db on the transaction of the request that ctx belongs to.
func session(ctx context.Context, db *gorm.DB) (*gorm.DB, error) {
	tx, err := reprisepg.SQLTx(ctx)
	if err != nil {
		return nil, err
	}
	// The Context gives the session a statement; without one it shares that of db.
	s := db.Session(&gorm.Session{NewDB: true, Context: ctx, SkipDefaultTransaction: true})
	s.Statement.ConnPool = tx
	return s, nil
}

func book(db *gorm.DB, o order) (id int64, err error) {
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
		return 0, errFunds
	}
	booked := transfer{Source: o.From, Target: o.To, Amount: o.Amount, Note: o.Note}
	err = db.Create(&booked).Error
	return booked.ID, err
}
