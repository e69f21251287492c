package serve

import (
	"context"

	"github.com/reprise-go/reprise/core/store"
)

// ownerStore is a store that also puts the owner of an attempt into the context of its
// handler. Only the store and its engine know it otherwise; a test compares the owner of
// an effect with that of the record.
type ownerStore struct {
	store.Store

	binder     store.ContextBinder // the store's own; nil: it has none
	transactor store.Transactor    // likewise
}

// withOwner returns s as an ownerStore with the abilities that an engine looks for. It
// adds one, so it is not a decorator with Unwrap.
func withOwner(s store.Store) store.Store {
	o := &ownerStore{Store: s}
	o.binder, _ = store.As[store.ContextBinder](s)
	o.transactor, _ = store.As[store.Transactor](s)
	if waiter, ok := store.As[store.Waiter](s); ok {
		return struct {
			*ownerStore
			store.Waiter
		}{o, waiter}
	}
	return o
}

type ownerKey struct{}

// Bind implements [store.ContextBinder].
func (s *ownerStore) Bind(ctx context.Context, id store.ID, owner store.Owner) context.Context {
	if s.binder != nil {
		ctx = s.binder.Bind(ctx, id, owner)
	}
	return context.WithValue(ctx, ownerKey{}, owner)
}

// Atomic implements [store.ContextBinder].
func (s *ownerStore) Atomic() bool { return s.binder != nil && s.binder.Atomic() }

// Transacts implements [store.Transactor].
func (s *ownerStore) Transacts() error {
	if s.transactor == nil {
		return store.ErrInvalid
	}
	return s.transactor.Transacts()
}

// Transaction implements [store.Transactor].
func (s *ownerStore) Transaction(ctx context.Context, id store.ID, owner store.Owner) (context.Context, store.Transaction) {
	return s.transactor.Transaction(ctx, id, owner)
}

// ownerFrom returns the owner of the attempt that ctx belongs to, nil outside of one.
func ownerFrom(ctx context.Context) []byte {
	owner, ok := ctx.Value(ownerKey{}).(store.Owner)
	if !ok {
		return nil
	}
	return owner[:]
}
