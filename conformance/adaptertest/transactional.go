package adaptertest

import (
	"context"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// transactional is a policy whose effects commit with the response.
var transactional = protocol.Config{Transactional: true}

// Transacting returns a store that gives every handler a transaction, without a database:
// it has begun, and commits as the record is completed. What an adapter does for those of
// a database is the same, so that no test of an adapter needs one.
func Transacting(st store.Store) store.Store { return transacting{st} }

type transacting struct{ store.Store }

// Transacts implements [store.Transactor].
func (transacting) Transacts() error { return nil }

// Transaction implements [store.Transactor].
func (s transacting) Transaction(ctx context.Context, _ store.ID, _ store.Owner) (context.Context, store.Transaction) {
	return ctx, begun(s)
}

// begun is the transaction of a handler.
type begun struct{ store.Store }

// Close implements [store.Transaction].
func (begun) Close() bool { return true }

// Commit implements [store.Transaction].
func (b begun) Commit(ctx context.Context, r store.CompleteRequest) error { return b.Complete(ctx, r) }

// Rollback implements [store.Transaction].
func (begun) Rollback(context.Context) error { return nil }
