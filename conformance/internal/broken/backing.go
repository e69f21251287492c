package broken

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// pause is how long a flawed store waits between looking and writing, and hang how long
// it ignores a context. They pass at once in a bubble of testing/synctest.
const (
	pause = time.Millisecond
	hang  = time.Hour
)

// Backing is the state that the handles of one store share. Its clock is package time,
// plus the offset by which a case moved it ahead.
type Backing struct {
	flaw Flaw

	mu      sync.Mutex
	ahead   time.Duration
	records map[store.ID]*record
	fence   uint64
	watches map[store.ID][]chan struct{}
	handles int
	buffer  []byte               // of all payloads, with the flaw payloadShared
	counted map[store.ID]int     // attempts before a release, with the flaw releaseKeepsAttempts
	expired map[store.Owner]bool // owners whose claims expired unseen, with the flaw releaseUnseenTakesNext
}

type record struct {
	owner       store.Owner
	former      []store.Owner // that were taken over
	handle      int           // that claimed it
	fingerprint store.Fingerprint
	scope       uint64
	completed   bool
	attempt     int
	fence       uint64
	policy      store.Policy
	description string
	claimedAt   time.Time // of its last attempt
	completedAt time.Time
	granted     time.Time // when the lease began
	lease       time.Time // when it ends
	replayed    time.Time // until when the payload is, once completed
	valid       time.Time
	reason      string // why its outcome is unknown
	payload     []byte
	damaged     bool
}

// New returns an empty store with a flaw; without one it keeps the whole contract.
func New(flaw Flaw) *Backing {
	return &Backing{
		flaw:    flaw,
		records: map[store.ID]*record{},
		watches: map[store.ID][]chan struct{}{},
		counted: map[store.ID]int{},
		expired: map[store.Owner]bool{},
	}
}

// Open returns a handle, as if from another process.
func (b *Backing) Open() *Store {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handles++
	return &Store{Backing: b, handle: b.handles}
}

// Advance moves the clock ahead.
func (b *Backing) Advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ahead += d
}

func (b *Backing) now() time.Time { return time.Now().Add(b.ahead) }

// Damage makes the record of id unreadable. It reports whether there is one.
func (b *Backing) Damage(id store.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	rec := b.records[b.place(id)]
	if rec != nil {
		rec.damaged = true
	}
	return rec != nil
}

// Store is a handle on a [Backing]: a [reprise.Store] with every ability.
type Store struct {
	*Backing

	handle int
}

var (
	_ store.Store         = (*Store)(nil)
	_ store.Waiter        = (*Store)(nil)
	_ store.Inspector     = (*Store)(nil)
	_ store.Purger        = (*Store)(nil)
	_ store.Checker       = (*Store)(nil)
	_ store.ContextBinder = (*Store)(nil)
	_ store.Meter         = (*Store)(nil)
	_ store.Leaser        = (*Store)(nil)
)

// has reports whether the flaw of the store is one of these.
func (b *Backing) has(flaws ...Flaw) bool { return slices.Contains(flaws, b.flaw) }

// linger lets others in between looking and writing, if the store has the flaw.
func (b *Backing) linger(flaw Flaw) {
	if b.has(flaw) {
		b.mu.Unlock()
		time.Sleep(pause) //nolint:forbidigo // the wait is the flaw
		b.mu.Lock()
	}
}

func (b *Backing) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		if b.has(hangsWithEndedContext) {
			time.Sleep(hang) //nolint:forbidigo // the wait is the flaw
		}
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return nil
}

func (b *Backing) place(id store.ID) store.ID {
	if b.has(idCut) {
		id[len(id)-1] = 0
	}
	return id
}

// find returns the record of id, or nil when none is seen.
func (b *Backing) find(id store.ID, now time.Time) (*record, error) {
	rec := b.records[b.place(id)]
	switch {
	case rec == nil:
		return nil, nil
	case rec.damaged && !b.has(corruptIsNew):
		return nil, store.ErrCorrupt
	case rec.damaged || !b.seen(rec, now):
		return nil, nil
	default:
		return rec, nil
	}
}

func (b *Backing) seen(rec *record, now time.Time) bool {
	valid := now.Before(rec.valid)
	if b.has(validOneInstantLonger) {
		valid = !now.After(rec.valid)
	}
	switch {
	case b.has(lapsedSeenForever) && !rec.completed,
		b.has(horizonNeverEnds) && rec.policy.Horizon > 0:
		return true
	case b.has(liveLeaseEndsWithValidity):
		return valid
	default:
		return valid || b.live(rec, now)
	}
}

func (b *Backing) live(rec *record, now time.Time) bool {
	end := rec.lease
	switch {
	case b.has(noExclusion):
		return false
	case b.has(leaseEarly):
		end = rec.granted.Add(rec.lease.Sub(rec.granted) / 2)
	case b.has(leaseOneInstantLonger):
		end = end.Add(1)
	}
	return !rec.completed && now.Before(end)
}

// after returns the instant that is d after now.
func (b *Backing) after(now time.Time, d time.Duration) time.Time {
	if b.has(longDurationsOverflow) {
		d = time.Duration(int32(d.Milliseconds())) * time.Millisecond //nolint:gosec // the overflow is the flaw
	}
	return now.Add(d)
}

func (b *Backing) remove(id store.ID) {
	delete(b.records, b.place(id))
	if b.has(fenceRestarts) {
		b.fence = 0
	}
}

// lost is the error for who is not the owner.
func (b *Backing) lost(payload []byte) error {
	switch {
	case b.has(errorRaw):
		return errNoRows
	case b.has(errorTellsPayload):
		return fmt.Errorf("%w: cannot keep %q", store.ErrLeaseLost, payload)
	default:
		return store.ErrLeaseLost
	}
}
