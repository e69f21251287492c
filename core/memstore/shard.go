package memstore

import (
	"container/heap"
	"sync"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// shardCount is how many parts a store is divided into, each with a lock of its own.
const shardCount = 64

// sweepPerClaim is how many dead records the claim of a new key deletes at most. More than one, so that a store with a
// backlog shrinks while it is used.
const sweepPerClaim = 2

// shard keeps the records of some IDs.
type shard struct {
	room *room

	mu      sync.Mutex
	records map[reprise.ID]*record
	order   expiry // of all records
	fence   uint64 // the last one that was given out
	watches map[reprise.ID][]chan struct{}
}

// init prepares an empty shard. Fences start at the wall clock in microseconds, so that they go on growing over a restart: a resource
// that remembers the highest fence it saw is not locked out.
func (sh *shard) init(r *room, now time.Time) {
	sh.room = r
	sh.records = make(map[reprise.ID]*record)
	sh.watches = make(map[reprise.ID][]chan struct{})
	sh.fence = uint64(now.UnixMicro())
}

// find returns the record of id, or nil when none is seen. A dead record is deleted on the way.
func (sh *shard) find(id reprise.ID, now instant) *record {
	rec := sh.records[id]
	if rec != nil && now >= rec.end() {
		sh.remove(rec)
		return nil
	}
	return rec
}

// makeRoom counts one more record, after a sweep, or reports that the store is full.
func (sh *shard) makeRoom(now instant) bool {
	sh.sweep(now, sweepPerClaim)
	return sh.room.enter()
}

// add keeps a new record, for which there is room.
func (sh *shard) add(rec *record) {
	sh.records[rec.id] = rec
	heap.Push(&sh.order, rec)
}

// remove deletes a record.
func (sh *shard) remove(rec *record) {
	delete(sh.records, rec.id)
	heap.Remove(&sh.order, rec.place)
	sh.room.leave(rec.size())
}

// moved makes the turn of a record that ends earlier come earlier. One that ends later, as most that complete do, moves when its turn
// comes, which costs less than moving it each time.
func (sh *shard) moved(rec *record) {
	if t := &sh.order[rec.place]; rec.end() < t.at {
		t.at = rec.end()
		heap.Fix(&sh.order, rec.place)
	}
}

// sweep deletes up to limit dead records and returns how many it deleted. Those whose turn has come and that are not dead are few:
// they were running when they would have ended.
func (sh *shard) sweep(now instant, limit int) (deleted int) {
	for deleted < limit && len(sh.order) > 0 && now >= sh.order[0].at {
		t := &sh.order[0]
		if t.at = t.rec.end(); now < t.at {
			heap.Fix(&sh.order, 0)
			continue
		}
		sh.remove(t.rec)
		deleted++
	}
	return deleted
}

// turn is when to look whether a record is dead: at its end, or earlier.
type turn struct {
	at  instant
	rec *record
}

// expiry is a heap of turns, the first on top: the dead are found without looking at the others. It holds the instants, so that
// keeping the order touches no record but those that move.
type expiry []turn

func (e expiry) Len() int           { return len(e) }
func (e expiry) Less(i, j int) bool { return e[i].at < e[j].at }

func (e expiry) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].rec.place, e[j].rec.place = i, j
}

// Push is called by package heap.
func (e *expiry) Push(x any) {
	rec := x.(*record)
	rec.place = len(*e)
	*e = append(*e, turn{rec.end(), rec})
}

// Pop is called by package heap.
func (e *expiry) Pop() any {
	last := len(*e) - 1
	rec := (*e)[last].rec
	(*e)[last] = turn{} // let the record be collected
	*e = (*e)[:last]
	return rec
}
