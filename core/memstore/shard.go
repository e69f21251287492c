package memstore

import (
	"container/heap"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// shardCount is how many parts a store is divided into, each with its own lock.
const shardCount = 64

// sweepPerClaim is how many dead records the claim of a new key deletes at most. More
// than one, so that a store with a backlog shrinks while it is used.
const sweepPerClaim = 2

// shard keeps the records of some IDs.
type shard struct {
	usage *usage

	mu      sync.Mutex
	records map[store.ID]*record
	order   expiry // of all records
	fence   uint64 // the last one that was given out
	watches map[store.ID][]chan struct{}
}

// init prepares an empty shard. Fences start at the wall clock in microseconds, so that
// they go on growing over a restart: a resource that remembers the highest fence it saw
// does not refuse the new process.
func (sh *shard) init(u *usage, now time.Time) {
	sh.usage = u
	sh.records = make(map[store.ID]*record)
	sh.watches = make(map[store.ID][]chan struct{})
	sh.fence = uint64(now.UnixMicro())
}

// find returns the record of id, or nil when none is seen. A dead record is deleted on
// the way, and so is a payload whose retention has ended.
func (sh *shard) find(id store.ID, now instant) *record {
	rec := sh.records[id]
	switch {
	case rec == nil:
	case now >= rec.end():
		sh.remove(rec)
		return nil
	case now >= rec.due():
		sh.expire(rec)
	}
	return rec
}

// add keeps a new record, which is counted already.
func (sh *shard) add(rec *record) {
	sh.records[rec.id] = rec
	heap.Push(&sh.order, rec)
}

// remove deletes a record.
func (sh *shard) remove(rec *record) {
	delete(sh.records, rec.id)
	heap.Remove(&sh.order, rec.index)
	sh.usage.remove(rec.scope, rec.size())
}

// expire deletes the payload of a record. Its place in the order of expiry is right when
// it comes first.
func (sh *shard) expire(rec *record) {
	sh.usage.addPayload(rec.scope, -len(rec.payload))
	rec.payload, rec.expired = nil, true
}

// reschedule moves a record that ends earlier than before forward in the order of expiry.
// One that ends later, as most that complete do, moves when it comes first, which costs
// less than moving it each time.
func (sh *shard) reschedule(rec *record) {
	if entry := &sh.order[rec.index]; rec.due() < entry.at {
		entry.at = rec.due()
		heap.Fix(&sh.order, rec.index)
	}
}

// sweep deletes up to limit dead records, or payloads whose retention has ended, and
// returns how many it deleted. Of few of the records that come first in the order there
// is nothing to delete: they were running when they would have ended.
func (sh *shard) sweep(now instant, limit int) (purged int) {
	for purged < limit && len(sh.order) > 0 && now >= sh.order[0].at {
		first := &sh.order[0]
		switch rec := first.rec; {
		case now >= rec.end():
			sh.remove(rec)
			purged++
			continue
		case now >= rec.due():
			sh.expire(rec)
			purged++
		}
		first.at = first.rec.due()
		heap.Fix(&sh.order, 0)
	}
	return purged
}

// expiryEntry is when to look whether something of a record is to be deleted: when it is
// due, or earlier.
type expiryEntry struct {
	at  instant
	rec *record
}

// expiry is a heap, the earliest entry on top: expired records are found without reading
// the others. The entries hold the instants, so keeping the order touches no record but
// those that move.
type expiry []expiryEntry

func (e expiry) Len() int           { return len(e) }
func (e expiry) Less(i, j int) bool { return e[i].at < e[j].at }

func (e expiry) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].rec.index, e[j].rec.index = i, j
}

// Push is called by package heap.
func (e *expiry) Push(x any) {
	rec := x.(*record)
	rec.index = len(*e)
	*e = append(*e, expiryEntry{rec.due(), rec})
}

// Pop is called by package heap.
func (e *expiry) Pop() any {
	last := len(*e) - 1
	rec := (*e)[last].rec
	(*e)[last] = expiryEntry{} // let the record be collected
	*e = (*e)[:last]
	return rec
}
