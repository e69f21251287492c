package transactional

import (
	"context"
	"fmt"

	"github.com/reprise-go/reprise/core/store"
)

// comfortableSlots is how many attempts a pool should let run at once.
const comfortableSlots = 8

// Check checks the server and the size of the pool.
func (s *Store) Check(ctx context.Context) ([]store.Finding, error) {
	list, err := s.table.Check(ctx)
	if err != nil {
		return nil, err
	}
	return append(list, s.poolFindings()...), nil
}

// poolFindings returns a warning for a small pool.
func (s *Store) poolFindings() []store.Finding {
	if s.slots.Limit >= comfortableSlots {
		return nil
	}
	return []store.Finding{{Code: "pool-size", Severity: store.Warning, Detail: fmt.Sprintf(
		"the pool has %d connections, so only %d requests run at once and the others wait; give it %d or more (pool_max_conns in the URL, or SetMaxOpenConns)",
		s.slots.Limit+spareConns, s.slots.Limit, comfortableSlots+spareConns)}}
}

// Usage counts the connections of the pool, the slots, of which each running attempt has
// one, and the claims that wait for a slot.
func (s *Store) Usage() []store.Usage {
	slots := s.Stats()
	return append(s.table.Usage(), store.Usage{
		Name: "slots", Used: int64(slots.InUse), Limit: int64(slots.Slots), Waiting: int64(slots.Waiting),
	})
}
