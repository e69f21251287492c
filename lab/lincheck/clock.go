package lincheck

import (
	"math"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// never is later than every end of a history.
const never = time.Duration(math.MaxInt64 / 4)

// window is when something happens by the store's clock: not before from, not after to.
type window struct{ from, to time.Duration }

func (w window) plus(d time.Duration) window { return window{w.from + d, min(w.to+d, never)} }

// wider returns the window with a tick more on each side.
func (w window) wider(tick time.Duration) window { return window{w.from - tick, w.to + tick} }

// and returns the intersection of two windows, and whether they have one.
func (w window) and(o window) (window, bool) {
	w = window{max(w.from, o.from), min(w.to, o.to)}
	return w, w.from <= w.to
}

// passed returns whether the end of a span has passed at an instant: one result, or both
// where the windows do not tell.
func (w window) passed(at window) []bool {
	switch {
	case at.from >= w.to:
		return []bool{true}
	case at.to < w.from:
		return []bool{false}
	default:
		return []bool{true, false}
	}
}

// clock is the knowledge about a store's clock that its results give.
type clock struct {
	tick     time.Duration // a lease or a validity counts from a tick of the clock
	late     time.Duration // and ends up to so much later
	fenced   fenceClock    // nil where fences only count
	measured bool          // Remaining is that of the record
}

// fenceClock returns when a claim took place that has a fence, by the store's clock: both
// in microseconds since 1970. That clock is not compared with the one of this process:
// see [recorder.settle].
type fenceClock func(fence int64) (from, to int64)

// redisClock: a claim counts from the start of its millisecond, of which the fence is the
// last microsecond. Those that are granted and released within one millisecond have the
// microseconds behind it. The server reads its clock before it serves a command, and
// shows a key until the end of the millisecond in which it expires.
var redisClock = clock{
	tick: 2 * time.Millisecond, measured: true,
	fenced: func(fence int64) (from, to int64) {
		began := (fence - 999) / 1000 * 1000
		return began, began + 999
	},
}

func exactly(fence int64) (from, to int64) { return fence, fence }

// sqlClock is that of PostgreSQL, SQLite and MariaDB: a claim counts from its fence.
var sqlClock = clock{measured: true, fenced: exactly}

// memoryClock: fences only count, and the rest is exact.
var memoryClock = clock{measured: true}

// began returns when a claim began, as its fence says, by the store's clock since an
// epoch.
func (c *clock) began(epoch time.Time, fence uint64) window {
	zero := epoch.UnixMicro()
	from, to := c.fenced(int64(fence))
	return window{time.Duration(from-zero) * time.Microsecond, time.Duration(to-zero) * time.Microsecond}
}

// tells reports whether Remaining says when the lease ends that the claim met. That of a
// new lease is a lower bound, which says less than the instant of the claim.
func (c *clock) tells(res store.ClaimResult, lapsed bool) bool {
	return c.measured && (lapsed || res.Outcome == store.InProgress)
}
