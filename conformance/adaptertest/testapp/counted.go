package testapp

import (
	"context"
	"sync"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
)

// counted is an observer that adds up the counts in events, to compare them with
// [reprise.Engine.Stats].
type counted struct {
	mu       sync.Mutex
	outcomes map[reprise.Outcome]uint64
	ends     map[reprise.AttemptEnd]uint64
}

func newCounted() *counted {
	return &counted{outcomes: make(map[reprise.Outcome]uint64), ends: make(map[reprise.AttemptEnd]uint64)}
}

// Observe implements [reprise.Observer].
func (c *counted) Observe(_ context.Context, e reprise.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Counted && e.Outcome != 0 {
		c.outcomes[e.Outcome]++
	}
	if e.Counted && e.End != 0 {
		c.ends[e.End]++
	}
}

// check fails tb unless every attempt of a closed engine has one counted end, and the
// events agree with the engine's counts.
func (c *counted) check(tb testing.TB, stats reprise.Stats) {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if stats.Running != 0 {
		tb.Errorf("attempts that began are %d more than those that ended: %v, %v", stats.Running, stats.Outcomes, stats.Ends)
	}
	for o, n := range stats.Outcomes {
		if n != c.outcomes[o] {
			tb.Errorf("the outcome %v is counted %d times, and %d events carry it", o, n, c.outcomes[o])
		}
	}
	for e, n := range stats.Ends {
		if n != c.ends[e] {
			tb.Errorf("the end %v is counted %d times, and %d events carry it", e, n, c.ends[e])
		}
	}
}
