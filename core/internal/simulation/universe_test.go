package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// universe is how large one simulation is. Its seed decides.
type universe struct {
	processes int
	keys      int // every third at most once
	clients   int // for each key
	chaos     time.Duration
	patience  time.Duration // for everything to come to an end after the chaos
	lease     time.Duration
	maxRun    time.Duration
}

// draw returns the universe of a seed.
func draw(seed uint64) universe {
	d := newDice(seed, 1<<48)
	u := universe{
		processes: 1 + d.below(3),
		keys:      1 + d.below(4),
		clients:   2 + d.below(3),
		chaos:     time.Duration(20+d.below(160)) * time.Second,
		patience:  time.Hour,
		lease:     time.Duration(2+d.below(30)) * time.Second,
	}
	u.maxRun = u.lease * time.Duration(1+d.below(4)) // handlers take up to four
	return u
}

// chronicle is the events of a universe, in order.
type chronicle struct {
	began time.Time
	lines []line
}

// line is something that happened to a key, or, with none, to all of them.
type line struct {
	at   time.Duration
	key  string
	text string
}

func newChronicle() *chronicle { return &chronicle{began: time.Now()} }

func (c *chronicle) note(key, format string, args ...any) {
	c.lines = append(c.lines, line{time.Since(c.began), key, fmt.Sprintf(format, args...)})
}

// of returns the history of a key, among the crashes and the pauses.
func (c *chronicle) of(key string) string {
	var text strings.Builder
	for _, l := range c.lines {
		if l.key == key || l.key == "" {
			fmt.Fprintf(&text, "%14v  %s\n", l.at, l.text)
		}
	}
	return text.String()
}

// inOrder returns the lines in an order that does not depend on which goroutine an
// instant woke first.
func (c *chronicle) inOrder() []line {
	slices.SortStableFunc(c.lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.key, b.key), cmp.Compare(a.text, b.text))
	})
	return c.lines
}
