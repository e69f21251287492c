package sqlstore

import (
	"sync"
	"time"
)

// Minutely counts events, so that a log can report them at most once a minute. It is safe
// for concurrent use.
type Minutely struct {
	mu    sync.Mutex
	last  time.Time
	count int // since last
}

// Count counts an event. At most once a minute it returns how many there were since the
// last time; otherwise due is false.
func (m *Minutely) Count() (events int, due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count++
	now := time.Now()
	if now.Sub(m.last) < time.Minute {
		return 0, false
	}
	events, m.last, m.count = m.count, now, 0
	return events, true
}
