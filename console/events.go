package console

import (
	"context"
	"slices"
	"sync"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// The bounds of [Events].
const (
	keptEvents = 4096             // the newest
	keptDeeds  = 500              // the newest resolutions, kept apart from other events
	slotLength = 15 * time.Minute // of the history
	slotCount  = 96               // 24 hours
)

// Events is a [reprise.Observer] that keeps the newest events of this process and counts
// 24 hours of them, in about 1 MiB. Give it to [reprise.Config].Observer, together with
// others by [reprise.Observers], and to [Config].Events. It is safe for concurrent use.
type Events struct {
	mu     sync.Mutex
	began  time.Time
	ring   []event
	deeds  []event // the oldest first
	next   int     // in the ring, once it is full
	slots  [slotCount]slot
	newest int64 // number of the newest slot: the time divided by slotLength
}

// event is one event and when it was observed.
type event struct {
	reprise.Event

	At time.Time
}

// slot counts the requests of a quarter of an hour.
type slot struct {
	Started  uint64 // operations that ran
	Replayed uint64
	Refused  uint64 // 409, 422 and failures of the store
}

// NewEvents returns an empty Events.
func NewEvents() *Events { return &Events{began: time.Now()} }

// Observe implements [reprise.Observer].
func (e *Events) Observe(_ context.Context, observed reprise.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := time.Now()
	s := e.slot(at)
	switch outcome := observed.Outcome; {
	case outcome == 0, !observed.Counted: // not of a request
	case outcome == reprise.Claimed, outcome == reprise.Unprotected:
		s.Started++
	case outcome == reprise.Replayed:
		s.Replayed++
	default:
		s.Refused++
	}
	if observed.Kind == reprise.EventResolved {
		e.deeds = append(e.deeds[max(len(e.deeds)-keptDeeds+1, 0):], event{observed, at})
	}
	if len(e.ring) < keptEvents {
		e.ring = append(e.ring, event{observed, at})
		return
	}
	e.ring[e.next] = event{observed, at}
	e.next = (e.next + 1) % keptEvents
}

// slot returns the slot of an instant, and clears those that were skipped.
func (e *Events) slot(at time.Time) *slot {
	number := at.UnixNano() / int64(slotLength)
	if e.newest == 0 || number-e.newest >= slotCount {
		e.slots = [slotCount]slot{}
		e.newest = number
	}
	for e.newest < number {
		e.newest++
		e.slots[e.newest%slotCount] = slot{}
	}
	return &e.slots[e.newest%slotCount]
}

// of returns the events of an operation, the oldest first.
func (e *Events) of(id store.ID) []event {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []event
	for i := range e.ring {
		if next := &e.ring[(e.next+i)%len(e.ring)]; next.ID == id {
			found = append(found, *next)
		}
	}
	return found
}

// resolved reports whether the resolution of a record as it was is among the events.
func (e *Events) resolved(id store.ID, fence uint64, state store.RecordState) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.deeds, func(d event) bool {
		return d.ID == id && d.Fence == fence && (d.State == state || d.State.WasCompleted() && state.WasCompleted())
	})
}

// resolutions returns the events of resolutions, the newest first.
func (e *Events) resolutions() []event {
	e.mu.Lock()
	defer e.mu.Unlock()
	deeds := slices.Clone(e.deeds)
	slices.Reverse(deeds)
	return deeds
}

// history returns the slots of the last 24 hours, the oldest first.
func (e *Events) history() []slot {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.slot(time.Now())
	slots := make([]slot, 0, slotCount)
	for i := e.newest - slotCount + 1; i <= e.newest; i++ {
		slots = append(slots, e.slots[i%slotCount])
	}
	return slots
}

// total adds slots up.
func total(slots []slot) (sum slot) {
	for _, s := range slots {
		sum.Started += s.Started
		sum.Replayed += s.Replayed
		sum.Refused += s.Refused
	}
	return sum
}
