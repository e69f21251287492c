package reprise

import "time"

// instant is a reading of both local clocks. The wall clock may be set, and the monotonic
// clock stops while the machine sleeps, so a deadline has passed as soon as either of
// them says so. The store's clock decides who owns a record; the local clocks only decide
// how long to rely on a lease.
type instant struct {
	mono time.Duration // since the process started
	wall int64         // Unix time in nanoseconds
}

var processStart = time.Now()

func now() instant {
	t := time.Now()
	return instant{mono: t.Sub(processStart), wall: t.UnixNano()}
}

// sinceStart reads the monotonic clock alone, which takes half the time.
func sinceStart() time.Duration { return time.Since(processStart) }

// never is later than every reading.
var never = instant{mono: 1<<63 - 1, wall: 1<<63 - 1}

func (i instant) add(d time.Duration) instant {
	if i == never {
		return never
	}
	return instant{mono: i.mono + d, wall: i.wall + int64(d)}
}

// until returns how long it is from i to then, by the clock that says less.
func (i instant) until(then instant) time.Duration {
	if then == never {
		return never.mono
	}
	return min(then.mono-i.mono, time.Duration(then.wall-i.wall))
}

// skew returns how far the wall clock is ahead of the monotonic one. It grows when the
// machine sleeps or its clock is set ahead.
func (i instant) skew() time.Duration { return time.Duration(i.wall) - i.mono }

// align returns an instant that both clocks reach when the first of them would have
// reached then.
func (i instant) align(then instant) instant {
	if then == never {
		return never
	}
	return i.add(i.until(then))
}

// reached reports whether either clock is at then or past it.
func (i instant) reached(then instant) bool { return i.until(then) <= 0 }

// earlier returns the earlier of two instants by the monotonic clock, which is right if
// both were read with one skew.
func earlier(a, b instant) instant {
	if b.mono < a.mono {
		return b
	}
	return a
}
