package repriseetcd

import (
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// maxRunning bounds the attempts that a process remembers.
const maxRunning = 1 << 16

// attempts remembers when this process claimed its attempts, so that a completion writes
// the whole record without reading it. When there are too many, all are forgotten, and
// their completions read.
type attempts struct {
	mu    sync.Mutex
	began map[store.Owner]time.Time
}

func (a *attempts) begin(owner store.Owner, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.began) >= maxRunning {
		clear(a.began)
	}
	a.began[owner] = at
}

// end forgets an attempt, and returns when this process claimed it, if it knows that.
func (a *attempts) end(owner store.Owner) (at time.Time, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, known = a.began[owner]
	delete(a.began, owner)
	return at, known
}
