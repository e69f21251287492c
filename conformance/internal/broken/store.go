package broken

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// Backing is a right store in memory, and a flaw between it and its callers. It can
// damage records, and has every ability.
type Backing struct {
	right *memstore.Store
	hooks []hook

	mu      sync.Mutex
	known   map[store.ID]*known
	damaged map[store.ID]uint64 // the fences of records that cannot be read
	writes  uint64              // so far, for these fences
	watches map[store.ID][]chan struct{}
	handles int
	effects int    // of handlers, which are committed
	buffer  []byte // of all payloads, for a store that has only one
}

// known is what was told of an ID. It does not end with its record.
type known struct {
	owner       store.Owner   // of the last attempt; zero once it is released
	handle      int           // that claimed it
	former      []store.Owner // that were taken over
	unseen      []store.Owner // whose attempts ended unseen
	first, last store.ClaimRequest
	firstAt, at time.Time // when these were granted, and the lease renewed
	granted     store.ClaimResult
	lease       time.Time // when it ends
	valid       time.Time // until when
	done        *store.CompleteRequest
	doneAt      time.Time
	reason      string
	resolved    time.Time // until when the payload is replayed
	noted       time.Time // for flaws: an instant
	attempts    int       // for flaws: before a release
}

func (k *known) seen(now time.Time) bool {
	return !k.owner.IsZero() && (now.Before(k.valid) || k.done == nil && now.Before(k.lease))
}

func (k *known) live(now time.Time) bool {
	return k.seen(now) && k.done == nil && k.reason == "" && now.Before(k.lease)
}

func (k *known) lapsed(now time.Time) bool {
	return k.seen(now) && k.done == nil && k.reason == "" && !now.Before(k.lease)
}

// New returns an empty store with a flaw; without one it keeps the whole contract.
func New(flaw Flaw) *Backing {
	b := flawless()
	for _, f := range storeFlaws() {
		if f.Flaw == flaw {
			b.hooks = f.hooks
		}
	}
	return b
}

func flawless() *Backing {
	return &Backing{right: memstore.New(), known: map[store.ID]*known{}, damaged: map[store.ID]uint64{}, watches: map[store.ID][]chan struct{}{}}
}

// Open returns a handle, as if from another process.
func (b *Backing) Open() *Store {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handles++
	return &Store{Backing: b, handle: b.handles}
}

// Damage makes the record of id unreadable. It reports whether there is one.
func (b *Backing) Damage(id store.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes++
	b.damaged[id] = 1<<32 + b.writes
	return b.known[id] != nil
}

// Store is a handle on a [Backing]: a [reprise.Store] with every ability.
type Store struct {
	*Backing

	handle int
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Waiter     = (*Store)(nil)
	_ store.Inspector  = (*Store)(nil)
	_ store.Counter    = (*Store)(nil)
	_ store.Purger     = (*Store)(nil)
	_ store.Checker    = (*Store)(nil)
	_ store.Meter      = (*Store)(nil)
	_ store.Transactor = (*Store)(nil)
)

// op is an operation to which a flaw applies; shown is each record that an operator sees,
// and anything is every operation of [store.Store].
type op uint8

const (
	claim op = iota
	renew
	renewAll
	complete
	release
	unknown
	inspect
	shown
	list
	count
	resolve
	purge
	check
	unwatch
	meter
	begin
	write
	leave
	commit
	rollback
	anything
)

// call is one call of an operation. The fields of the operation are set; a flaw changes
// those of the request before, and those of the result after it was executed.
type call struct {
	*Store
	*known // as it was before the call

	ctx     context.Context
	op      op
	id      *store.ID
	from    *store.Owner // that calls
	now     time.Time
	skipped bool // not executed
	silent  bool // wakes no watch
	err     error

	claim    *store.ClaimRequest
	got      store.ClaimResult
	renew    *store.RenewRequest
	index    int  // in the batch
	lost     bool // an entry before it was
	status   store.RenewStatus
	complete *store.CompleteRequest
	unknown  *store.UnknownRequest
	resolve  *store.Resolution
	record   *store.Record
	query    *store.Query
	page     *store.Page
	ids      []store.ID // after the cursor
	limit    *int
	findings []store.Finding
	usage    []store.Usage
	tx       *transaction
}

func (c *call) own() bool    { return c.owner == *c.from && !c.owner.IsZero() }
func (c *call) former() bool { return slices.Contains(c.known.former, *c.from) }
func (c *call) again() bool  { return c.got.Outcome == store.Claimed && c.got.Fence == c.granted.Fence }

// run executes a call between what a flaw does before and after it. One call runs at a
// time.
func (s *Store) run(c *call, execute func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Store, c.now, c.known = s, time.Now(), s.knownOf(c.id)
	s.apply(c, before)
	if _, unreadable := s.damaged[*c.id]; unreadable && !c.skipped && c.op < inspect {
		c.skipped, c.err, c.status = true, store.ErrCorrupt, store.RenewLost
	}
	if !c.skipped {
		execute()
	}
	s.apply(c, after)
}

func (s *Store) apply(c *call, when moment) {
	for _, h := range s.hooks {
		if h.when == when && (h.op == c.op || h.op == anything && c.op < inspect) {
			h.do(c)
		}
	}
}

// knownOf returns a copy of what is known of an ID, which does not change with it.
func (s *Store) knownOf(id *store.ID) *known {
	var k known
	if id != nil && s.known[*id] != nil {
		k = *s.known[*id]
	}
	return &k
}

// note changes what is known of an ID.
func (s *Store) note(id store.ID, change func(*known)) {
	if s.known[id] == nil {
		s.known[id] = &known{}
	}
	change(s.known[id])
}

// pause lets others in between looking and writing. It looks again afterwards.
func (c *call) pause() {
	c.mu.Unlock()
	time.Sleep(time.Millisecond) //nolint:forbidigo // the wait is the flaw
	c.mu.Lock()
	c.now, c.known = time.Now(), c.knownOf(c.id)
}

// forget removes the record of an ID, whatever its state.
func (c *call) forget(id store.ID) {
	ctx := context.WithoutCancel(c.ctx)
	if k := c.knownOf(&id); k.done == nil && k.reason == "" {
		_ = c.right.Release(ctx, id, k.owner)
	}
	if r, err := c.right.Inspect(ctx, id); err == nil {
		_ = c.right.Resolve(ctx, id, store.Resolution{State: r.State, Fence: r.Fence, Forget: true})
	}
	delete(c.damaged, id)
	c.note(id, func(k *known) { *k = known{} })
}

func (c *call) pauseAndForget() {
	c.pause()
	c.forget(*c.id)
}

// Claim implements [store.Store].
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	c := &call{ctx: ctx, op: claim, id: &r.ID, from: &r.Owner, claim: &r}
	s.run(c, func() {
		if c.got, c.err = s.right.Claim(ctx, r); c.err == nil && c.got.Outcome == store.Claimed {
			s.note(r.ID, func(k *known) { k.grant(&r, c.got, s.handle, time.Now()) })
		}
	})
	return c.got, c.err
}

// grant notes that a claim was granted.
func (k *known) grant(r *store.ClaimRequest, got store.ClaimResult, handle int, now time.Time) {
	switch anew := got.Fence != k.granted.Fence; {
	case anew && got.Attempt > 1:
		k.former = append(slices.Clone(k.former), k.owner)
	case anew:
		*k = known{unseen: append(slices.Clone(k.unseen), k.owner), first: *r, firstAt: now, attempts: k.attempts}
	case got.Remaining <= 0:
		return
	}
	k.owner, k.handle, k.last, k.at, k.granted = r.Owner, handle, *r, now, got
	k.lease, k.valid, k.done, k.reason = now.Add(r.Lease), now.Add(r.Remembered()), nil, ""
}

// Renew implements [store.Store].
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	all := &call{ctx: ctx, op: renewAll, id: &store.ID{}, limit: new(int)}
	*all.limit = len(rs)
	s.run(all, func() { all.err = ctx.Err() })
	if all.err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, all.err)
	}
	var answers []store.RenewStatus
	for i := range rs {
		r := rs[i]
		c := &call{ctx: ctx, op: renew, id: &r.ID, from: &r.Owner, renew: &r, index: i, lost: slices.Contains(answers, store.RenewLost)}
		s.run(c, func() {
			var got []store.RenewStatus
			if got, c.err = s.right.Renew(ctx, []store.RenewRequest{r}); c.err == nil {
				c.status = got[0]
			}
			if c.status == store.Renewed {
				s.note(r.ID, func(k *known) { k.at, k.lease = c.now, c.now.Add(r.Lease) })
			}
		})
		if c.err != nil && !c.skipped {
			return nil, c.err
		}
		answers = append(answers, c.status)
	}
	return answers, nil
}

// Complete implements [store.Store].
func (s *Store) Complete(ctx context.Context, r store.CompleteRequest) error {
	c := &call{ctx: ctx, op: complete, id: &r.ID, from: &r.Owner, complete: &r}
	s.run(c, func() {
		if c.err = s.right.Complete(ctx, r); c.err == nil && c.done == nil {
			s.note(r.ID, func(k *known) { k.done, k.doneAt, k.valid = &r, time.Now(), time.Now().Add(r.Remembered()) })
			s.wake(c)
		}
	})
	return c.err
}

// Release implements [store.Store].
func (s *Store) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	c := &call{ctx: ctx, op: release, id: &id, from: &owner}
	s.run(c, func() {
		if c.err = s.right.Release(ctx, id, owner); c.err == nil && c.own() && c.seen(c.now) && c.done == nil && c.reason == "" {
			s.note(id, func(k *known) { k.owner = store.Owner{} })
			s.wake(c)
		}
	})
	return c.err
}

// Unknown implements [store.Store].
func (s *Store) Unknown(ctx context.Context, r store.UnknownRequest) error {
	c := &call{ctx: ctx, op: unknown, id: &r.ID, from: &r.Owner, unknown: &r}
	s.run(c, func() {
		if c.err = s.right.Unknown(ctx, r); c.err == nil && c.reason == "" {
			s.note(r.ID, func(k *known) {
				k.reason, k.lease = r.Reason, c.now
				k.noted, k.valid = k.valid, c.now.Add(k.last.Remembered())
			})
			s.wake(c)
		}
	})
	return c.err
}
