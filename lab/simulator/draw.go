package simulator

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// draw is one simulation: the services that are deployed one after another, and the steps
// of its schedule. Everything random is in it, so that a part of it can be taken out and
// the rest run again.
type draw struct {
	seed     uint64
	lag      time.Duration // the longest time that a message to or from the store takes
	store    []option
	services []service // the first ones serve from the start, each restart takes the next, and the last one comes after all
	steps    []step
}

// places is how many processes serve at a time.
const places = 3

// step is an event at an instant of the schedule.
type step struct {
	at   time.Duration
	text string
	do   func(*world)
}

// dice draw values. They are not safe for concurrent use: a draw is made before it runs.
type dice struct{ *rand.Rand }

func newDice(seed, stream uint64) dice {
	return dice{rand.New(rand.NewPCG(seed, stream))} //nolint:gosec // to be repeated
}

func (d dice) percent(n int) bool { return d.IntN(100) < n }

// of returns one of the values.
func of[T any](d dice, values ...T) T { return values[d.IntN(len(values))] }

// newDraw returns the draw of a seed.
func newDraw(seed uint64) *draw {
	d := newDice(seed, 0)
	c := &draw{seed: seed, lag: of(d, 0, 0, 20*time.Millisecond, 50*time.Millisecond), store: drawOptions(d, storeFields, 15)}
	for range places {
		c.services = append(c.services, drawService(d))
	}
	keys, at, last := 1+d.IntN(2), time.Duration(0), 0 // the last request is at that process
	for range 4 + d.IntN(10) {
		at += of(d, 0, 0, 0, 10*time.Millisecond, 50*time.Millisecond, 200*time.Millisecond, 900*time.Millisecond, time.Second, 2*time.Second, 5*time.Second, 12*time.Second, 35*time.Second)
		s, place := step{at: at}, of(d, last, last, d.IntN(places))
		switch n := d.IntN(100); {
		case n < 62:
			q, copies := drawRequest(d, keys), of(d, 1, 1, 1, 1, 2, 3, 5)
			last = q.place
			s.text, s.do = fmt.Sprintf("process %d: %d × %v", q.place, copies, q), func(w *world) {
				for range copies {
					w.send(q.again())
				}
			}
		case n < 76:
			s.text, s.do = drawFault(d, place)
		case n < 85:
			pause := of(d, time.Second, 4*time.Second, 40*time.Second)
			s.text, s.do = fmt.Sprintf("process %d pauses for %v", place, pause), func(w *world) { w.pause(place, pause) }
		case n < 95:
			next, crash := len(c.services), d.percent(60)
			c.services = append(c.services, drawService(d))
			s.text, s.do = fmt.Sprintf("process %d restarts with policy %d, crashed %v", place, next, crash), func(w *world) { w.restart(place, next, crash) }
		default:
			o := operatorAct{forget: d.percent(40), retention: of(d, time.Second, 10*time.Second)}
			s.text, s.do = o.String(), func(w *world) { w.operate(o) }
		}
		c.steps = append(c.steps, s)
	}
	c.services = append(c.services, drawService(d))
	return c
}

// String returns the draw as a person reads it.
func (c *draw) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "messages take up to %v; store: %s\n", c.lag, names(c.store))
	for i, s := range c.services {
		fmt.Fprintf(&b, "policy %d: %s\n", i, names(s))
	}
	for _, s := range c.steps {
		fmt.Fprintf(&b, "%12v  %s\n", s.at, s.text)
	}
	return b.String()
}
