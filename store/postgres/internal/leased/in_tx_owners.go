package leased

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// inTxOwners remembers the owners that called InTx, because the response with which the
// engine completes afterwards may differ from the one in the record.
//
// An owner is forgotten when its attempt ends, or, because the store does not learn of
// every end, when the record that it may have completed has expired.
type inTxOwners struct {
	any atomic.Bool // whether InTx was ever called

	mu     sync.Mutex
	owners map[store.Owner]time.Time // when to forget each
	sweep  int                       // how many owners trigger the next removal of old ones
}

// sweepMin is the smallest number of owners that triggers a removal of old ones.
const sweepMin = 64

// add remembers owner for as long as its record is valid.
func (c *inTxOwners) add(owner store.Owner, remembered time.Duration) {
	c.any.Store(true)
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owners == nil {
		c.owners = make(map[store.Owner]time.Time)
	}
	c.owners[owner] = now.Add(remembered + time.Minute) // the server's clock may run slower
	if len(c.owners) <= max(c.sweep, sweepMin) {
		return
	}
	for o, until := range c.owners {
		if now.After(until) {
			delete(c.owners, o)
		}
	}
	c.sweep = 2 * len(c.owners) // spreads the cost of a removal over as many calls
}

// called reports whether owner called InTx.
func (c *inTxOwners) called(owner store.Owner) bool {
	if !c.any.Load() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, found := c.owners[owner]
	return found
}

// forget undoes add.
func (c *inTxOwners) forget(owner store.Owner) {
	if !c.any.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.owners, owner)
}
