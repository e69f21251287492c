package reprisepg

import (
	"github.com/reprise-go/reprise/core/store"
)

var (
	_ store.Meter = (*Store)(nil)
	_ store.Meter = (*TransactionalStore)(nil)
)

// Usage implements [store.Meter], with the connections of the pool.
func (t *records) Usage() []store.Usage {
	pool := t.db.use()
	return []store.Usage{{Name: "connections", Used: int64(pool.used), Limit: int64(pool.limit)}}
}

// Usage implements [store.Meter], with the connections of the pool, and the slots: how
// many attempts run of those that may run at once, and how many claims wait for one to
// end.
func (s *TransactionalStore) Usage() []store.Usage {
	slots := s.Stats()
	return append(s.records.Usage(), store.Usage{
		Name: "slots", Used: int64(slots.InUse), Limit: int64(slots.Slots), Waiting: int64(slots.Waiting),
	})
}
