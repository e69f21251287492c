package memstore

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/reprise-go/reprise/core/store"
)

// scopeReserve bounds a scope, as a multiple of the free room. See [Bounds].
const scopeReserve = 9

// usage adds up the use of all shards against the bounds of the store, and the share of
// each scope.
type usage struct {
	bounds  Bounds
	records atomic.Int64
	bytes   atomic.Int64
	scopes  [shardCount]struct {
		mu   sync.Mutex
		used map[uint64]*scopeUsage
	}
}

// scopeUsage is the usage of one scope.
type scopeUsage struct {
	scope   uint64
	records int64        // guarded by the lock of its map
	bytes   atomic.Int64 // of payloads, too
}

// add counts one record of a scope without a payload, or returns the reason to refuse it.
// Scope 0 is unknown, and has no share.
func (u *usage) add(scope uint64) (*scopeUsage, error) {
	if scope == 0 {
		return nil, u.addRecord()
	}
	part := &u.scopes[scope%shardCount]
	part.mu.Lock()
	defer part.mu.Unlock()
	s := part.used[scope]
	if s != nil {
		free, freeBytes := int64(u.bounds.Records)-u.records.Load(), u.bounds.Bytes-u.bytes.Load()
		if s.records/scopeReserve >= free || s.bytes.Load()/scopeReserve >= freeBytes {
			return nil, fmt.Errorf("%w: memstore holds %d records in %d bytes, %d of them in %d bytes of this scope, which gets no more",
				store.ErrFull, u.records.Load(), u.bytes.Load(), s.records, s.bytes.Load())
		}
	}
	if err := u.addRecord(); err != nil {
		return nil, err
	}
	if s == nil {
		s = &scopeUsage{scope: scope}
		if part.used == nil {
			part.used = make(map[uint64]*scopeUsage)
		}
		part.used[scope] = s
	}
	s.records++
	s.bytes.Add(recordOverhead)
	return s, nil
}

func (u *usage) addRecord() error {
	for {
		n := u.records.Load()
		if n >= int64(u.bounds.Records) || u.bytes.Load() >= u.bounds.Bytes {
			return fmt.Errorf("%w: memstore holds %d of %d records in %d of %d bytes",
				store.ErrFull, n, u.bounds.Records, u.bytes.Load(), u.bounds.Bytes)
		}
		if u.records.CompareAndSwap(n, n+1) {
			u.bytes.Add(recordOverhead)
			return nil
		}
	}
}

// addPayload counts the payload, description or reason of a record, or one that was
// deleted, with a negative size. It never refuses: see [Bounds].
func (u *usage) addPayload(s *scopeUsage, size int) {
	u.bytes.Add(int64(size))
	if s != nil {
		s.bytes.Add(int64(size))
	}
}

// remove subtracts a record of size bytes.
func (u *usage) remove(s *scopeUsage, size int64) {
	u.records.Add(-1)
	u.bytes.Add(-size)
	if s == nil {
		return
	}
	part := &u.scopes[s.scope%shardCount]
	part.mu.Lock()
	defer part.mu.Unlock()
	s.bytes.Add(-size)
	if s.records--; s.records == 0 {
		delete(part.used, s.scope)
	}
}

// Usage implements [store.Meter], with the records and their bytes as [Bounds] counts
// them. Records past their retention count until a claim or Purge deletes them.
func (s *Store) Usage() []store.Usage {
	return []store.Usage{
		{Name: "records", Used: s.usage.records.Load(), Limit: int64(s.usage.bounds.Records)},
		{Name: "bytes", Used: s.usage.bytes.Load(), Limit: s.usage.bounds.Bytes},
	}
}
