package repriselocal

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	reprise "github.com/reprise-go/reprise/core"
)

// The defaults of [Config], and its limits.
const (
	DefaultMaxBytes = 32 << 20
	DefaultMaxAge   = 10 * time.Second

	minBytes = 64 << 10
	maxBytes = 1 << 40
	maxAge   = time.Hour
)

// EntryOverhead is what an entry counts besides its payload, in bytes: the record as the
// cache knows it, and what the cache needs to find it and to decide how long it stays.
const EntryOverhead = 320

// largestShare is the part of MaxBytes that a payload may have at most. A larger one
// would drive out too many others.
const largestShare = 16

// Config bounds a [Store]. The zero value is the documented default in every field.
type Config struct {
	// MaxBytes is how much memory the entries take: their payloads, and [EntryOverhead]
	// for each. What is used least goes first. A payload of more than a sixteenth of it is
	// not kept. What remembers the records that were replayed once takes a fortieth more,
	// and 4 MiB at most. Default 32 MiB; 64 KiB to 1 TiB.
	MaxBytes int64

	// MaxAge is how long an entry is used at most. It bounds how long something that
	// changes a completed record behind the back of this process has no effect here: see
	// the package comment. Default 10 s; 1 ms to 1 h.
	MaxAge time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.MaxAge == 0 {
		c.MaxAge = DefaultMaxAge
	}
	if c.MaxBytes < minBytes || c.MaxBytes > maxBytes {
		return c, fmt.Errorf("%w: repriselocal.Config.MaxBytes is %d, want %d to %d", reprise.ErrInvalid, c.MaxBytes, minBytes, maxBytes)
	}
	if c.MaxAge < reprise.MinDuration || c.MaxAge > maxAge {
		return c, fmt.Errorf("%w: repriselocal.Config.MaxAge is %v, want %v to %v", reprise.ErrInvalid, c.MaxAge, reprise.MinDuration, maxAge)
	}
	return c, nil
}

// Store is a [reprise.Store] with the abilities of the store inside. It is safe for
// concurrent use. [New] makes one.
type Store struct {
	inner   reprise.Store
	ignores bool // the store inside is a ValueIgnorer
	cfg     Config
	cache   *otter.Cache[reprise.ID, *entry]
	seen    seen

	hits, misses atomic.Int64

	// resolved counts resolutions. An answer that was on its way during one does not
	// enter the cache. The lock orders entries and resolutions.
	resolving sync.RWMutex
	resolved  uint64
}

var (
	_ reprise.Store        = (*Store)(nil)
	_ reprise.Inspector    = (*Store)(nil)
	_ reprise.Meter        = (*Store)(nil)
	_ reprise.Recaller     = (*Store)(nil)
	_ reprise.ValueIgnorer = (*Store)(nil)
)

// New returns store with a cache of its completed records. The error wraps
// [reprise.ErrInvalid] when store is nil or a field of c is out of range.
func New(store reprise.Store, c Config) (*Store, error) {
	if store == nil {
		return nil, fmt.Errorf("%w: repriselocal.New needs a store", reprise.ErrInvalid)
	}
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	cache, err := otter.New(&otter.Options[reprise.ID, *entry]{
		MaximumWeight:    uint64(c.MaxBytes), //nolint:gosec // checked: positive
		Weigher:          func(_ reprise.ID, e *entry) uint32 { return e.weight() },
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[reprise.ID, *entry]) time.Duration { return e.Value.life }),
		Executor:         func(task func()) { task() }, // in the call that causes it
	})
	if err != nil {
		return nil, fmt.Errorf("%w: repriselocal: %w", reprise.ErrInvalid, err)
	}
	cache.StopAllGoroutines() // dead entries go when others come
	return &Store{inner: store, ignores: ignoresValues(store), cfg: c, cache: cache, seen: newSeen(c.MaxBytes)}, nil
}

// Unwrap returns the store inside.
func (s *Store) Unwrap() reprise.Store { return s.inner }

// IgnoresValues implements [reprise.ValueIgnorer], for a store inside that does.
func (s *Store) IgnoresValues() reprise.Store {
	if s.ignores {
		return s
	}
	return nil
}

func ignoresValues(store reprise.Store) (ignores bool) {
	defer func() { _ = recover() }() // a store of a type that cannot be compared
	v, ok := store.(reprise.ValueIgnorer)
	return ok && v.IgnoresValues() == store
}

// Claim implements [reprise.Store]. A completed record that the cache has is answered
// without the store inside.
func (s *Store) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	if e, passed := s.look(r.ID); e != nil {
		if err := r.Validate(); err != nil {
			return reprise.ClaimResult{}, err
		}
		if err := ctx.Err(); err != nil {
			return reprise.ClaimResult{}, fmt.Errorf("%w: %w", reprise.ErrUnavailable, err)
		}
		s.hits.Add(1)
		return e.answer(&r, passed), nil
	}
	s.misses.Add(1)
	if s.seen.has(r.ID) {
		return s.claimSeen(ctx, r)
	}
	answer, err := s.inner.Claim(ctx, r)
	if err == nil && answer.Outcome == reprise.Completed {
		s.seen.add(r.ID)
	}
	return answer, err
}

// claimSeen claims what was replayed before, and keeps the record if it is completed.
func (s *Store) claimSeen(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	asked := r.Validity
	r.Validity = true
	sent, resolved := time.Now(), s.resolutions()
	answer, err := s.inner.Claim(ctx, r)
	if err != nil {
		return answer, err
	}
	if answer.Outcome == reprise.Completed {
		s.keep(r.ID, resolved, newEntry(&r, &answer, sent, s.cfg.MaxAge))
	}
	if !asked {
		answer.Validity, answer.Age = 0, 0
	}
	return answer, nil
}

// Recall implements [reprise.Recaller] with what is in the cache: a policy that fails
// open does not run a completed operation that this process remembers.
func (s *Store) Recall(r reprise.ClaimRequest) (answer reprise.ClaimResult, by reprise.Store) {
	e, passed := s.look(r.ID)
	if e == nil || r.Validate() != nil {
		return reprise.ClaimResult{}, nil
	}
	s.hits.Add(1)
	return e.answer(&r, passed), s
}

// look returns the entry of id that may be used, and how much time has passed since it
// was so; nil if there is none.
func (s *Store) look(id reprise.ID) (*entry, time.Duration) {
	e, found := s.cache.GetIfPresent(id)
	if !found {
		return nil, 0
	}
	passed, usable := e.passed(time.Now())
	if !usable {
		return nil, 0
	}
	return e, passed
}

// Renew implements [reprise.Store].
func (s *Store) Renew(ctx context.Context, rs []reprise.RenewRequest) ([]reprise.RenewStatus, error) {
	return s.inner.Renew(ctx, rs)
}

// Complete implements [reprise.Store]. The answer does not enter the cache: few keys are
// ever replayed, and a repeated completion keeps the answer and the retention of an
// earlier one, which may be another.
func (s *Store) Complete(ctx context.Context, r reprise.CompleteRequest) error {
	return s.inner.Complete(ctx, r)
}

// Release implements [reprise.Store].
func (s *Store) Release(ctx context.Context, id reprise.ID, owner reprise.Owner) error {
	return s.inner.Release(ctx, id, owner)
}

// keep puts an entry into the cache, unless it is of no use or there was a resolution
// since the call that it is the answer to.
func (s *Store) keep(id reprise.ID, resolved uint64, e *entry) {
	if e.life <= 0 || int64(len(e.payload)) > s.cfg.MaxBytes/largestShare {
		return
	}
	s.resolving.RLock()
	defer s.resolving.RUnlock()
	if s.resolved == resolved {
		s.cache.Set(id, e)
	}
}

func (s *Store) resolutions() uint64 {
	s.resolving.RLock()
	defer s.resolving.RUnlock()
	return s.resolved
}

// forget removes the entry of a record that somebody resolved, and what is on its way to
// become one.
func (s *Store) forget(id reprise.ID) {
	s.resolving.Lock()
	defer s.resolving.Unlock()
	s.resolved++
	s.cache.Invalidate(id)
}

// entry is a completed record, as it was at an instant.
type entry struct {
	fingerprint reprise.Fingerprint
	payload     []byte // shared with every replay, so it is never written to
	from        time.Time
	life        time.Duration // how long after from the entry is used
	validity    time.Duration // of the record, at from
	age         time.Duration // of the record at from, negative if that was before its completion
}

// newEntry returns the entry for a record that the store answered to a claim. Everything
// counts from before the claim: what the store said was so at some later instant.
func newEntry(r *reprise.ClaimRequest, answer *reprise.ClaimResult, sent time.Time, maxAge time.Duration) *entry {
	return &entry{
		fingerprint: r.Fingerprint, payload: answer.Payload, from: sent,
		life: min(answer.Validity, maxAge), validity: answer.Validity, age: answer.Age - time.Since(sent),
	}
}

// passed returns how much time has passed since e was so, and whether it may be used.
func (e *entry) passed(now time.Time) (time.Duration, bool) {
	passed := elapsed(e.from, now)
	return passed, passed < e.life
}

// answer answers a claim.
func (e *entry) answer(r *reprise.ClaimRequest, passed time.Duration) reprise.ClaimResult {
	if r.Fingerprint != e.fingerprint {
		return reprise.ClaimResult{Outcome: reprise.Mismatch}
	}
	answer := reprise.ClaimResult{Outcome: reprise.Completed, Payload: e.payload}
	if r.Validity {
		answer.Validity, answer.Age = e.validity-passed, max(e.age+passed, 0)
	}
	return answer
}

func (e *entry) weight() uint32 {
	return uint32(min(len(e.payload)+EntryOverhead, math.MaxUint32))
}

// elapsed returns how much time has passed between two instants, by the clock that says
// more: the monotonic one stops while a machine sleeps, and the wall clock may be set
// back.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
