package combinations

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance/faultstore"
)

// draw is one combination: the services that are deployed one after another, and the
// steps that happen to them. Everything random is in it, so that a part of it can be
// taken out and the rest run again.
type draw struct {
	store    []option
	services []service // the first ones serve from the start, each restart takes the next, and the last one comes after all
	steps    []step
}

// places is how many processes serve at a time.
const places = 2

// step is an event at an instant of the schedule.
type step struct {
	at   time.Duration
	text string
	do   func(*world)
}

// dice draw values. They are not safe for concurrent use: a draw is made before it runs.
type dice struct{ *rand.Rand }

func (d dice) percent(n int) bool { return d.IntN(100) < n }

// of returns one of the values.
func of[T any](d dice, values ...T) T { return values[d.IntN(len(values))] }

// newDraw returns the draw of a seed.
func newDraw(seed uint64) *draw {
	d := dice{rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // to be repeated
	c := &draw{store: drawOptions(d, storeFields, 15)}
	for range places {
		c.services = append(c.services, drawService(d))
	}
	keys, at := 1+d.IntN(2), time.Duration(0)
	for range 4 + d.IntN(10) {
		at += of(d, 0, 0, 0, 10*time.Millisecond, 50*time.Millisecond, 200*time.Millisecond, 900*time.Millisecond, time.Second, 2*time.Second, 5*time.Second, 12*time.Second, 35*time.Second)
		s := step{at: at}
		switch n := d.IntN(100); {
		case n < 70:
			q := drawRequest(d, keys)
			copies := of(d, 1, 1, 1, 1, 2, 3, 5)
			s.text, s.do = fmt.Sprintf("process %d: %d × %v", q.place, copies, q), func(w *world) {
				for range copies {
					w.send(q.again())
				}
			}
		case n < 84:
			s.text, s.do = drawFault(d)
		case n < 94:
			place, next, crash := d.IntN(places), len(c.services), d.percent(60)
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

// drawFault returns a step that breaks the next calls of a process.
func drawFault(d dice) (text string, do func(*world)) {
	f := of(d, storeFaults...)
	place, n := d.IntN(places), of(d, 1, 2, 3, 5, 20)
	ops := of(d,
		[]faultstore.Op{faultstore.Claim}, []faultstore.Op{faultstore.Renew}, []faultstore.Op{faultstore.Complete}, []faultstore.Op{faultstore.Release}, []faultstore.Op{faultstore.Unknown},
		[]faultstore.Op{faultstore.Claim, faultstore.Renew, faultstore.Complete, faultstore.Release, faultstore.Unknown})
	return fmt.Sprintf("process %d: the next %d calls of %v: %s", place, n, ops, f.name), func(w *world) { w.harm(place, ops, n, f.fault) }
}

// String returns the draw as a person reads it.
func (c *draw) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "store: %s\n", names(c.store))
	for i, s := range c.services {
		fmt.Fprintf(&b, "policy %d: %s\n", i, names(s))
	}
	for _, s := range c.steps {
		fmt.Fprintf(&b, "%12v  %s\n", s.at, s.text)
	}
	return b.String()
}
