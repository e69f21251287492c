package repriseredis

import (
	"github.com/reprise-go/reprise/core/store"
)

var _ store.Meter = (*Store)(nil)

// Usage implements [store.Meter], with the connections of the client that are in use.
// Those that carry pipelines of the store are in use all the time.
func (s *Store) Usage() []store.Usage {
	pool := s.client.PoolStats()
	return []store.Usage{{Name: "connections", Used: max(0, int64(pool.TotalConns)-int64(pool.IdleConns))}}
}
