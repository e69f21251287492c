package repriseredis

import reprise "github.com/reprise-go/reprise/core"

var _ reprise.Meter = (*Store)(nil)

// Usage implements [reprise.Meter], with the connections of the client that are in use.
// Those that carry pipelines of the store are in use all the time.
func (s *Store) Usage() []reprise.Usage {
	pool := s.client.PoolStats()
	return []reprise.Usage{{Name: "connections", Used: max(0, int64(pool.TotalConns)-int64(pool.IdleConns))}}
}
