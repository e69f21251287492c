package reprise

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

const (
	stuckEvery   = 5 * time.Minute  // between two counts
	stuckLease   = time.Minute      // of the lock of the process that counts
	stuckRenewal = stuckLease / 3   // and how often it is renewed
	stuckPoll    = stuckLease / 2   // how often another process tries to take the lock
	stuckPage    = 30 * time.Second // the longest that one page of the listing may take
	stuckDenied  = time.Hour        // before another try where the store may not be listed
	stuckUnread  = 2 * stuckEvery   // until a process whose count nobody reads leaves it to another

	// stuckHeld is how often in a row the lock is found with another process before that
	// process counts as one whose count succeeds: one that fails gives the lock back.
	stuckHeld = int(2 * stuckEvery / stuckPoll)

	// stuckShare is the part of the time for which the listing keeps the store busy: after
	// each page it rests for nine times as long as the page took.
	stuckShare = 10

	// stuckDistinct is how many IDs a count remembers. A listing may show a record twice;
	// beyond so many it counts twice.
	stuckDistinct = 100_000
)

// stuckLock is the ID of the lock, which is a record like any other. It is no ID of an
// operation: those are digests of something else.
var stuckLock = store.ID(sha256.Sum256([]byte("reprise: the count of stuck records")))

// StuckCount is how many records of one label wait for an operator: see [Engine.Stuck].
type StuckCount struct {
	Label string            // of the policy
	State store.RecordState // StateLapsed or StateUnknown
	Count int
}

// stuckCounts has the lapsed and the unknown records of each label.
type stuckCounts map[string][2]int

func (c stuckCounts) list() []StuckCount {
	list := make([]StuckCount, 0, 2*len(c))
	for label, n := range c {
		list = append(list, StuckCount{label, store.StateLapsed, n[0]}, StuckCount{label, store.StateUnknown, n[1]})
	}
	return list
}

func (c stuckCounts) add(r *store.Record) {
	label := r.Label
	if _, known := c[label]; !known && len(c) >= mostLabels {
		label = otherLabels
	}
	n := c[label]
	if r.State == store.StateLapsed {
		n[0]++
	} else {
		n[1]++
	}
	c[label] = n
}

// stuckFound is the result of a count, which holds while the lock does.
type stuckFound struct {
	counts stuckCounts
	until  instant
}

// stuckCounter counts the stuck records of a store while it holds the lock.
type stuckCounter struct {
	inspector store.Inspector
	locks     *driver
	timeout   time.Duration
	observing *observing

	// work is run, and nil where the store cannot be counted.
	work      func(ctx context.Context)
	found     atomic.Pointer[stuckFound] // nil: this process does not count, or has not yet
	uncounted atomic.Bool                // Stats.Uncounted
	read      atomic.Int64               // when Stuck was called last, by the monotonic clock

	// Of run alone.
	owner   store.Owner
	until   instant // the end of the lock
	renewed instant
	held    int // how often in a row another process had the lock
}

func (c *stuckCounter) init(locks *driver, timeout time.Duration, o *observing) {
	c.locks, c.timeout, c.observing = locks, timeout, o
	var counts bool
	if c.inspector, counts = store.As[store.Inspector](locks.store); counts {
		c.work = c.run
	}
	c.uncounted.Store(!counts)
}

// run counts whenever somebody reads the count and it gets the lock, until ctx ends.
func (c *stuckCounter) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := stuckPoll
		if err := apart(func() error { return c.turn(ctx) }); err != nil && ctx.Err() == nil {
			c.uncounted.Store(true)
			event := Event{Kind: EventStoreError, Err: fmt.Errorf("%w: %w", errUncounted, err)}
			if c.observing.wants(&event) {
				c.observing.queue(ctx, event)
			}
			wait = stuckEvery // another process may do better
			if errors.Is(err, store.ErrMisconfigured) {
				wait = stuckDenied
			}
		}
		sleep(ctx, wait)
	}
}

// turn counts again and again while it has the lock, if somebody reads the count and it
// gets the lock. The error is that of a count.
func (c *stuckCounter) turn(ctx context.Context) error {
	if !c.isRead() || !c.lock(ctx) {
		return nil
	}
	defer func() {
		c.found.Store(nil)
		c.unlock(ctx)
	}()
	for {
		counts, held, err := c.count(ctx)
		if err != nil || !held {
			return err
		}
		c.found.Store(&stuckFound{counts, c.until})
		c.uncounted.Store(false)
		if !c.rest(ctx, stuckEvery) {
			return nil
		}
	}
}

// isRead reports whether somebody reads the count.
func (c *stuckCounter) isRead() bool { return sinceStart()-time.Duration(c.read.Load()) < stuckUnread }

// count reads all records once, page by page.
func (c *stuckCounter) count(ctx context.Context) (counts stuckCounts, held bool, err error) {
	counts = make(stuckCounts)
	seen := make(map[store.ID]bool)
	q := store.Query{States: store.States(store.StateLapsed, store.StateUnknown), Limit: store.MaxPage}
	for {
		began := now()
		page, err := c.page(ctx, q)
		if err != nil {
			return nil, true, err
		}
		for i := range page.Records {
			r := &page.Records[i]
			if !r.Stuck() || seen[r.ID] {
				continue
			}
			if len(seen) < stuckDistinct {
				seen[r.ID] = true
			}
			counts.add(r)
		}
		if page.Next == "" {
			return counts, true, nil
		}
		q.After = page.Next
		if !c.rest(ctx, (stuckShare-1)*(now().mono-began.mono)) {
			return nil, false, nil
		}
	}
}

func (c *stuckCounter) page(ctx context.Context, q store.Query) (page store.Page, err error) {
	defer classified(&err)
	ctx, cancel := context.WithTimeout(ctx, stuckPage)
	defer cancel()
	return c.inspector.List(ctx, q)
}

// rest waits and keeps the lock meanwhile. It reports false when that is lost, or nobody
// reads the count.
func (c *stuckCounter) rest(ctx context.Context, d time.Duration) bool {
	for {
		at := now()
		due := at.until(c.renewed.add(stuckRenewal))
		if due <= 0 {
			if !c.isRead() || !c.renew(ctx) {
				return false
			}
			continue
		}
		if d <= 0 {
			return true
		}
		step := min(d, due)
		if !sleep(ctx, step) {
			return false
		}
		d -= step
	}
}

// lock tries to take the lock. After an error it may have it, for a lease at most, in
// which no process counts.
func (c *stuckCounter) lock(ctx context.Context) bool {
	c.owner = store.NewOwner()
	at := now()
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	res, err := c.locks.claim(ctx, store.ClaimRequest{
		ID: stuckLock, Owner: c.owner, Policy: store.Policy{Label: store.ProbeLabel, Retention: stuckLease},
		Description: "the lock of the process that counts stuck records for its metrics",
		Lease:       stuckLease, Takeover: true,
	})
	c.renewed, c.until = at, at.add(stuckLease)
	if err != nil || res.Outcome == store.Claimed {
		c.held = 0
		return err == nil && res.Remaining > 0
	}
	if c.held++; c.held >= stuckHeld {
		c.uncounted.Store(false)
	}
	return false
}

// renew extends the lock, and reports false when it is lost. A store that does not answer
// is asked again until the lease has ended.
func (c *stuckCounter) renew(ctx context.Context) bool {
	at := now()
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	statuses, err := c.locks.renew(bounded, []store.RenewRequest{{ID: stuckLock, Owner: c.owner, Lease: stuckLease}})
	c.renewed = at
	switch {
	case err != nil:
		return ctx.Err() == nil && !now().reached(c.until)
	case statuses[0] != store.Renewed:
		return false
	}
	c.until = at.add(stuckLease)
	if found := c.found.Load(); found != nil {
		c.found.Store(&stuckFound{found.counts, c.until})
	}
	return true
}

// unlock releases the lock, also after ctx has ended: another process need not wait for
// its lease.
func (c *stuckCounter) unlock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	defer cancel()
	_ = c.locks.release(ctx, stuckLock, c.owner) // or it lapses
}
