package lincheck

import (
	"slices"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// underway has the calls on their way to one store or engine: the result of a claim may
// be as old as one of them. The duplicates of a claim share its result in an engine. And
// while the completion or release of an attempt is on its way, its engine answers as
// before, in progress or mismatch, though another process may have seen the attempt end.
type underway struct {
	mu     sync.Mutex
	engine bool
	calls  map[store.ID][]onWay
}

type onWay struct {
	kind kind
	from time.Duration
}

// ages are when the oldest call began whose result a claim may have.
type ages struct{ shared, own time.Duration }

func newUnderway(d *deployment) *underway {
	return &underway{engine: d.engines, calls: map[store.ID][]onWay{}}
}

// begin notes that a call begins.
func (u *underway) begin(in input, from time.Duration) ages {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := ages{from, from}
	for _, c := range u.calls[in.id] {
		if !u.engine {
			continue
		}
		if c.kind == claim {
			a.shared = min(a.shared, c.from)
		}
		if c.kind == claim || c.kind == complete || c.kind == release {
			a.own = min(a.own, c.from)
		}
	}
	u.calls[in.id] = append(u.calls[in.id], onWay{in.kind, from})
	return a
}

// end notes that a call has its result.
func (u *underway) end(in input, from time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.Index(u.calls[in.id], onWay{in.kind, from})
	u.calls[in.id] = slices.Delete(u.calls[in.id], i, i+1)
}
