package memstore

import "sync/atomic"

// room counts what the shards hold together against the bounds of the store.
type room struct {
	bounds  Bounds
	records atomic.Int64
	bytes   atomic.Int64
}

// enter makes room for one record without a payload, or reports that there is none.
func (r *room) enter() bool {
	for {
		n := r.records.Load()
		if n >= int64(r.bounds.Records) || r.bytes.Load() >= r.bounds.Bytes {
			return false
		}
		if r.records.CompareAndSwap(n, n+1) {
			r.bytes.Add(RecordOverhead)
			return true
		}
	}
}

// grow counts a payload. It never refuses: see [Bounds].
func (r *room) grow(payload int) { r.bytes.Add(int64(payload)) }

// leave gives back the room of a record of size bytes.
func (r *room) leave(size int64) {
	r.records.Add(-1)
	r.bytes.Add(-size)
}
