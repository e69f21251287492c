package teststore

import (
	"context"

	"github.com/reprise-go/reprise/core/store"
)

// Transacting is a store that gives each handler a transaction.
type Transacting struct {
	store.Store

	Able, Undo error        // of Transacts, and of a rollback
	OnCommit   func() error // before the record is completed, unless it fails
	Lazy       bool         // a transaction begins when its handler calls Begin
	Calls      []string     // of the transactions, and completions without one
}

// Transacts implements [store.Transactor].
func (s *Transacting) Transacts() error { return s.Able }

// Transaction implements [store.Transactor].
func (s *Transacting) Transaction(ctx context.Context, _ store.ID, _ store.Owner) (context.Context, store.Transaction) {
	tx := &transaction{s, !s.Lazy}
	return context.WithValue(ctx, beginKey{}, tx), tx
}

// Complete implements [store.Store].
func (s *Transacting) Complete(ctx context.Context, r store.CompleteRequest) error {
	s.Calls = append(s.Calls, "complete")
	return s.Store.Complete(ctx, r)
}

type beginKey struct{}

// Begin begins the transaction of the handler with this context.
func Begin(ctx context.Context) {
	ctx.Value(beginKey{}).(*transaction).begun = true //nolint:forcetypeassert // it is that of a handler
}

type transaction struct {
	of    *Transacting
	begun bool
}

func (tx *transaction) Close() bool {
	tx.of.Calls = append(tx.of.Calls, "close")
	return tx.begun
}

func (tx *transaction) Commit(ctx context.Context, r store.CompleteRequest) error {
	tx.of.Calls = append(tx.of.Calls, "commit")
	if tx.of.OnCommit != nil {
		if err := tx.of.OnCommit(); err != nil {
			return err
		}
	}
	return tx.of.Store.Complete(ctx, r)
}

func (tx *transaction) Rollback(context.Context) error {
	tx.of.Calls = append(tx.of.Calls, "rollback")
	return tx.of.Undo
}
