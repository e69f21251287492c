package labtest

import (
	"context"
	"errors"
	"sync"

	"github.com/reprise-go/reprise/core/store"
)

// TxStore ends attempts as an engine does for a transactional policy, so that tests of
// the store reach each call: a completion commits the handler's transaction if that has
// begun, and what was not applied is released.
type TxStore struct {
	TransactorStore

	mu       sync.Mutex
	attempts map[store.Owner]boundTx
}

type boundTx struct {
	context.Context // whose values the handler finds
	store.Transaction
}

// TransactorStore is a store in a database of SQL.
type TransactorStore interface {
	store.Store
	store.Transactor
	store.Inspector
	store.Purger
	store.Maintainer
	store.Checker
	store.Meter
}

// NewTxStore returns st as a transactional policy uses it.
func NewTxStore(st TransactorStore) *TxStore {
	return &TxStore{TransactorStore: st, attempts: make(map[store.Owner]boundTx)}
}

// Bind returns a context in which the handler of an attempt finds its transaction.
func (s *TxStore) Bind(ctx context.Context, id store.ID, owner store.Owner) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, found := s.attempts[owner]
	if !found {
		a.Context, a.Transaction = s.Transaction(context.WithoutCancel(ctx), id, owner)
		s.attempts[owner] = a
	}
	return withValues{ctx, a.Context}
}

// withValues is a context with the values of another one.
type withValues struct {
	context.Context
	values context.Context
}

// Value implements [context.Context].
func (c withValues) Value(key any) any { return c.values.Value(key) }

// take ends the handler's part of an attempt, and returns its transaction, nil if it has
// not begun.
func (s *TxStore) take(owner store.Owner) store.Transaction {
	s.mu.Lock()
	a, found := s.attempts[owner]
	delete(s.attempts, owner)
	s.mu.Unlock()
	if !found || !a.Close() {
		return nil
	}
	return a.Transaction
}

// Discard completes an attempt without its effects.
func (s *TxStore) Discard(ctx context.Context, r store.CompleteRequest) error {
	if tx := s.take(r.Owner); tx != nil {
		_ = tx.Rollback(ctx) // else the server does
	}
	return s.TransactorStore.Complete(ctx, r)
}

// Complete commits the transaction of the attempt.
func (s *TxStore) Complete(ctx context.Context, r store.CompleteRequest) error {
	tx := s.take(r.Owner)
	if tx == nil {
		return s.TransactorStore.Complete(ctx, r)
	}
	err := tx.Commit(ctx, r)
	if errors.Is(err, store.ErrNotApplied) {
		_ = s.TransactorStore.Release(ctx, r.ID, r.Owner)
	}
	return err
}

// Release rolls back and releases.
func (s *TxStore) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	if tx := s.take(owner); tx != nil {
		_ = tx.Rollback(ctx)
	}
	return s.TransactorStore.Release(ctx, id, owner)
}

// Unknown rolls back, and says that the outcome is unknown.
func (s *TxStore) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if tx := s.take(r.Owner); tx != nil {
		_ = tx.Rollback(ctx)
	}
	return s.TransactorStore.Unknown(ctx, r)
}
