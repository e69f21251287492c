package memstore

import (
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// instant is a reading of the store's clock, or a deadline on it: the time since the
// store was made.
type instant = time.Duration

// record is the record of an ID. The lock of its shard guards it.
type record struct {
	id          store.ID
	owner       store.Owner // zero once an operator resolved it
	fingerprint store.Fingerprint
	completed   bool
	attempt     int
	fence       uint64
	policy      store.Policy
	description string
	claimed     instant     // when its last attempt claimed it
	lease       instant     // when the lease ends; once completed, when that was
	replayed    instant     // once completed: until when the payload is replayed
	valid       instant     // until when the record is valid
	reason      string      // why its outcome is unknown; empty unless its owner said so
	payload     []byte      // shared with every replay, so it is never written to
	expired     bool        // the payload was deleted when its retention ended
	scope       *scopeUsage // that it counts for; nil: of an unknown scope
	index       int         // in its shard's order of expiry
}

// live reports whether an attempt holds the record. A deadline that equals now has
// passed.
func (r *record) live(now instant) bool { return !r.completed && now < r.lease }

// end returns the instant from which on the record is not seen: the end of its validity,
// or of a lease that outlives it.
func (r *record) end() instant {
	if r.completed {
		return r.valid
	}
	return max(r.valid, r.lease)
}

// due returns the instant at which something of the record is to be deleted: its payload,
// or all of it.
func (r *record) due() instant {
	if r.completed && !r.expired {
		return min(r.replayed, r.valid)
	}
	return r.end()
}

// size returns the size of the record in bytes.
func (r *record) size() int64 {
	return recordOverhead + int64(len(r.description)+len(r.reason)+len(r.payload))
}
