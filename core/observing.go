package reprise

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxQueuedEvents = 4096
	slowObservation = 100 * time.Millisecond
)

// observing calls the observer of an engine, and its log for operators. The goroutine of
// a request reports its events at once. An event that no request waits for, such as a
// renewal, goes through a bounded queue with a separate goroutine, so that an observer
// that blocks delays only other events.
type observing struct {
	observer Observer // nil: none
	log      operatorLog

	slow    atomic.Uint64
	dropped atomic.Uint64

	mu     sync.Mutex
	events []queuedEvent
	idle   chan struct{} // not nil while the goroutine runs; closed when it ends
}

type queuedEvent struct {
	ctx   context.Context
	event Event
}

// wants reports whether the observer or the log wants an event, of which the caller has
// set the kind. Few events concern the log.
func (o *observing) wants(e *Event) bool {
	if o.observer != nil {
		return true
	}
	_, message := notice(e)
	return message != ""
}

// notify calls the log and the observer, and counts the call if it was slow.
func (o *observing) notify(ctx context.Context, e Event) {
	start := now().mono
	o.log.report(ctx, &e)
	notify(ctx, o.observer, e)
	if now().mono-start > slowObservation {
		o.slow.Add(1)
	}
}

// queue reports an event from a separate goroutine, or drops it when the queue is full.
func (o *observing) queue(ctx context.Context, e Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.events) >= maxQueuedEvents {
		o.dropped.Add(1)
		return
	}
	o.events = append(o.events, queuedEvent{ctx, e})
	if o.idle == nil {
		o.idle = make(chan struct{})
		go o.serve(o.idle)
	}
}

// serve passes on queued events until there are none. When an observer ends its
// goroutine, another one goes on.
func (o *observing) serve(idle chan struct{}) {
	drained := false
	defer func() {
		if drained {
			close(idle)
		} else {
			go o.serve(idle)
		}
	}()
	for {
		o.mu.Lock()
		if len(o.events) == 0 {
			o.events, o.idle = nil, nil
			o.mu.Unlock()
			drained = true
			return
		}
		next := o.events[0]
		o.events[0] = queuedEvent{}
		o.events = o.events[1:]
		o.mu.Unlock()
		o.notify(next.ctx, next.event)
	}
}

// wait returns when the events of the queue have been passed on, or when ctx ends.
func (o *observing) wait(ctx context.Context) {
	o.mu.Lock()
	idle := o.idle
	o.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

func (o *observing) stats(s *Stats) {
	o.mu.Lock()
	s.EventsQueued = len(o.events)
	o.mu.Unlock()
	s.EventsDropped, s.EventsSlow = o.dropped.Load(), o.slow.Load()
}
