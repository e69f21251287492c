package serve

import (
	"context"

	reprise "github.com/reprise-go/reprise/core"
)

// ownerStore is a store that also puts the owner of an attempt into the context of its
// handler. Only the store and its engine know it otherwise; a test compares the owner of
// an effect with that of the record.
type ownerStore struct {
	reprise.Store

	binder reprise.ContextBinder // the store's own; nil: it has none
}

// withOwner returns s as an ownerStore with the abilities that an engine looks for. It
// adds one, so it is not a decorator with Unwrap.
func withOwner(s reprise.Store) reprise.Store {
	o := &ownerStore{Store: s}
	o.binder, _ = reprise.As[reprise.ContextBinder](s)
	if waiter, ok := reprise.As[reprise.Waiter](s); ok {
		return struct {
			*ownerStore
			reprise.Waiter
		}{o, waiter}
	}
	return o
}

type ownerKey struct{}

// Bind implements [reprise.ContextBinder].
func (s *ownerStore) Bind(ctx context.Context, id reprise.ID, owner reprise.Owner) context.Context {
	if s.binder != nil {
		ctx = s.binder.Bind(ctx, id, owner)
	}
	return context.WithValue(ctx, ownerKey{}, owner)
}

// ownerFrom returns the owner of the attempt that ctx belongs to, nil outside of one.
func ownerFrom(ctx context.Context) []byte {
	owner, ok := ctx.Value(ownerKey{}).(reprise.Owner)
	if !ok {
		return nil
	}
	return owner[:]
}
