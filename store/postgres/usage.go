package reprisepg

import reprise "github.com/reprise-go/reprise/core"

var (
	_ reprise.Meter = (*Store)(nil)
	_ reprise.Meter = (*TransactionalStore)(nil)
)

// Usage implements [reprise.Meter], with the connections of the pool.
func (t *records) Usage() []reprise.Usage {
	pool := t.db.use()
	return []reprise.Usage{{Name: "connections", Used: int64(pool.used), Limit: int64(pool.limit)}}
}

// Usage implements [reprise.Meter], with the connections of the pool, and the slots: how
// many attempts run of those that may run at once, and how many claims wait for one to
// end.
func (s *TransactionalStore) Usage() []reprise.Usage {
	slots := s.Stats()
	return append(s.records.Usage(), reprise.Usage{
		Name: "slots", Used: int64(slots.InUse), Limit: int64(slots.Slots), Waiting: int64(slots.Waiting),
	})
}
