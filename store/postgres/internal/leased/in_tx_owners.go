package leased

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// inTxOwners remembers the owners that called InTx: the answer that the engine completes
// with afterwards may differ from the one that is in the record.
//
// An owner is forgotten at the end of its attempt, and at the latest when the record that
// it may have completed is not valid any more: some attempts have no end that the store
// hears of.
type inTxOwners struct {
	any atomic.Bool // whether InTx was ever called

	mu     sync.Mutex
	owners map[store.Owner]time.Time // and when to forget them
	sweep  int                       // how many there are when it looks for old ones next
}

// sweepMin is how many owners are kept before it looks for old ones.
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
	c.owners[owner] = now.Add(remembered + time.Minute) // the server's clock may go slower
	if len(c.owners) <= max(c.sweep, sweepMin) {
		return
	}
	for o, until := range c.owners {
		if now.After(until) {
			delete(c.owners, o)
		}
	}
	c.sweep = 2 * len(c.owners) // as many calls share the cost of a sweep
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
