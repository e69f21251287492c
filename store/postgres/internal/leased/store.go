// Package leased is the store whose claims commit at once and hold for a lease.
package leased

import (
	"context"
	"sync/atomic"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
)

// Store is the leased store over a table.
type Store struct {
	table         *table.Table
	statements    statements
	recent        table.ReplayRatio           // the share of replays among claims
	queue         *batching.Queue[queuedCall] // of claims and completions; nil: they are not combined
	active        atomic.Int64                // claims and completions on their way
	maxUncombined int64                       // how many may be on their way before they are combined
}

// New returns the leased store over t.
func New(t *table.Table) *Store {
	s := &Store{table: t, statements: newStatements(&t.Names)}
	s.queue = newQueue(s)
	return s
}

// Claim implements [store.Store]: see reprisepg.Store.Claim.
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return store.ClaimResult{}, err
	}
	if s.queue == nil {
		return s.claimAlone(ctx, &r)
	}
	return s.claimCombined(ctx, &r)
}

// Renew implements [store.Store] in one statement for the whole batch.
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	return s.table.Renew(ctx, rs)
}

// Complete implements [store.Store] in one statement, which may be sent together with
// other calls, as Claim is. A repeated completion takes two.
func (s *Store) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if s.queue == nil {
		return s.table.Complete(ctx, &r)
	}
	return s.completeCombined(ctx, &r)
}

// Unknown implements [store.Store] in one statement.
func (s *Store) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.table.Unknown(ctx, &r)
}
