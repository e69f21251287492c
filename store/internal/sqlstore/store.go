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
	Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error)
	Complete(ctx context.Context, r *store.CompleteRequest) error
	Unknown(ctx context.Context, r *store.UnknownRequest) error
	Release(ctx context.Context, id store.ID, owner store.Owner) error
	Purge(ctx context.Context, limit int) (purged int, err error)
	Maintain(ctx context.Context, purge func(ctx context.Context, limit int) (int, error))
	Confirmed()
	Usage() []store.Usage
	store.Inspector
}

// Store has the methods that the stores of all databases share.
type Store struct {
	records      Records
	transactions *lazytx.Transactions
}

// NewStore returns the methods over a table, and over the transactions of handlers.
func NewStore(r Records, t *lazytx.Transactions) *Store { return &Store{r, t} }

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

// Renew implements [store.Store].
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	return s.records.Renew(ctx, rs)
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

// Release implements [store.Store].
func (s *Store) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	return s.records.Release(ctx, id, owner)
}

// Transaction implements [store.Transactor].
func (s *Store) Transaction(ctx context.Context, id store.ID, owner store.Owner) (context.Context, store.Transaction) {
	return s.transactions.Bind(ctx, id, owner)
}

// Inspect implements [store.Inspector].
func (s *Store) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	return s.records.Inspect(ctx, id)
}

// List implements [store.Inspector], in the order of the IDs.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	return s.records.List(ctx, q)
}

// Resolve implements [store.Inspector]. An attempt that comes back afterwards finds that
// it lost the record.
func (s *Store) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	return s.records.Resolve(ctx, id, r)
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
