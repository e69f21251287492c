package sqlstore

import (
	"context"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/lazytx"
)

// Records are the operations on a table: those of [Table], or of a database that has some
// of them in its own way. They get valid requests.
type Records interface {
	Answer(ctx context.Context, r *store.ClaimRequest) (result store.ClaimResult, answered bool, err error)
	Claim(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error)
	Complete(ctx context.Context, r *store.CompleteRequest) error
	Unknown(ctx context.Context, r *store.UnknownRequest) error
	Purge(ctx context.Context, limit int) (purged int, err error)
	Maintain(ctx context.Context, purge func(ctx context.Context, limit int) (int, error))
	Confirmed()
	Usage() []store.Usage
	shared
}

// shared are the operations that a [Store] has as its table has them. List returns
// records in the order of their IDs. An attempt that comes back after a Resolve finds
// that it lost the record.
type shared interface {
	Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error)
	Release(ctx context.Context, id store.ID, owner store.Owner) error
	store.Inspector
	store.Surveyor
}

// Store has the methods that the stores of all databases share.
type Store struct {
	shared

	records      Records
	transactions *lazytx.Transactions
}

// NewStore returns the methods over a table, and over the transactions of handlers.
func NewStore(r Records, t *lazytx.Transactions) *Store { return &Store{r, r, t} }

// Claim implements [store.Store].
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return store.ClaimResult{}, err
	}
	if result, answered, err := s.records.Answer(ctx, &r); answered || err != nil {
		return result, err
	}
	result, err := s.records.Claim(ctx, &r)
	if err == nil && result.Outcome == store.Claimed {
		s.records.Confirmed()
	}
	return result, err
}

// Complete implements [store.Store].
func (s *Store) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.records.Complete(ctx, &r)
}

// Unknown implements [store.Store].
func (s *Store) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.records.Unknown(ctx, &r)
}

// Transaction implements [store.Transactor].
func (s *Store) Transaction(ctx context.Context, id store.ID, owner store.Owner) (context.Context, store.Transaction) {
	return s.transactions.Bind(ctx, id, owner)
}

// maxPurge is the largest number of records that one call deletes or empties.
const maxPurge = 100_000

// Purge implements [store.Purger], for a limit of 1 to 100,000 records.
func (s *Store) Purge(ctx context.Context, limit int) (purged int, err error) {
	if limit < 1 || limit > maxPurge {
		return 0, Invalid(s.transactions.Name, "purge of %d records: want 1 to %d", limit, maxPurge)
	}
	return s.records.Purge(ctx, limit)
}

// Maintain implements [store.Maintainer]: it purges at the pace of the configuration
// until ctx ends. An engine calls it.
func (s *Store) Maintain(ctx context.Context) { s.records.Maintain(ctx, s.records.Purge) }

// Usage implements [store.Meter]: it counts the connections of the pool, and the
// transactions of handlers with those who wait for one.
func (s *Store) Usage() []store.Usage { return append(s.records.Usage(), s.transactions.Usage()...) }
