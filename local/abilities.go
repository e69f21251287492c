package repriselocal

import (
	"context"
	"fmt"

	reprise "github.com/reprise-go/reprise/core"
)

// Inspect implements [reprise.Inspector] by the store inside: an operator sees what is
// there.
func (s *Store) Inspect(ctx context.Context, id reprise.ID) (reprise.Record, error) {
	inspector, err := s.inspector()
	if err != nil {
		return reprise.Record{}, err
	}
	return inspector.Inspect(ctx, id)
}

// List implements [reprise.Inspector] by the store inside.
func (s *Store) List(ctx context.Context, q reprise.Query) (reprise.Page, error) {
	inspector, err := s.inspector()
	if err != nil {
		return reprise.Page{}, err
	}
	return inspector.List(ctx, q)
}

// Resolve implements [reprise.Inspector] by the store inside. Whatever becomes of it, the
// next claim of id in this process asks the store.
func (s *Store) Resolve(ctx context.Context, id reprise.ID, r reprise.Resolution) error {
	inspector, err := s.inspector()
	if err != nil {
		return err
	}
	defer s.forget(id)
	return inspector.Resolve(ctx, id, r)
}

// inspector returns the ability of the store inside. [reprise.As] does not find that of
// the decorator where there is none.
func (s *Store) inspector() (reprise.Inspector, error) {
	inspector, ok := reprise.As[reprise.Inspector](s.inner)
	if !ok {
		return nil, fmt.Errorf("%w: the store inside is not an Inspector", reprise.ErrInvalid)
	}
	return inspector, nil
}

// Stats is what a store has answered from its cache, and what the cache holds.
type Stats struct {
	Hits   int64 // claims that were answered from the cache
	Misses int64 // claims that the store inside answered
	Bytes  int64 // as [Config].MaxBytes counts them
}

// Stats returns the numbers since the store was made.
func (s *Store) Stats() Stats {
	return Stats{Hits: s.hits.Load(), Misses: s.misses.Load(), Bytes: int64(s.cache.WeightedSize())} //nolint:gosec // at most MaxBytes
}

// Usage implements [reprise.Meter] with what the store inside uses, and the numbers of
// [Store.Stats] as local-hits, local-misses and local-bytes.
func (s *Store) Usage() []reprise.Usage {
	var list []reprise.Usage
	if meter, ok := reprise.As[reprise.Meter](s.inner); ok {
		list = append(list, meter.Usage()...)
	}
	stats := s.Stats()
	return append(list,
		reprise.Usage{Name: "local-hits", Used: stats.Hits},
		reprise.Usage{Name: "local-misses", Used: stats.Misses},
		reprise.Usage{Name: "local-bytes", Used: stats.Bytes, Limit: s.cfg.MaxBytes},
	)
}
