package lincheck

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// shortLease is the shortest that an engine has. Histories with it run in a bubble of
// synctest, where a second takes no time.
const shortLease = time.Second

// wire is the link of an engine to its store: slow, and for spans of time closed to
// renewals, so that leases lapse. It records for the history the calls that the engine
// makes on its own initiative.
type wire struct {
	store.Store
	began time.Time

	mu     sync.Mutex
	dice   *rand.Rand
	closed []bool                  // in which spans
	owners map[granted]store.Owner // of the engine's attempts
	names  map[store.Owner]held    // and their names in the history
	noted  []noted
}

// granted is a claim that the store granted.
type granted struct {
	id    store.ID
	fence uint64
}

// noted is a call that the engine made without being asked: a renewal, or a claim of an
// owner that had lost its record.
type noted struct {
	owner store.Owner
	in    input
	from  time.Time
	to    time.Time
	out   output
}

// closedSpan is the length of a span that is closed or not: long enough for a lease.
const closedSpan = 1500 * time.Millisecond

func newWire(st store.Store, seed uint64) *wire {
	w := &wire{
		Store: st, began: time.Now(), dice: rand.New(rand.NewPCG(seed, 0)),
		owners: map[granted]store.Owner{}, names: map[store.Owner]held{}, closed: make([]bool, 1000),
	}
	for i := range w.closed {
		w.closed[i] = w.dice.IntN(2) == 0
	}
	return w
}

// travel takes some milliseconds.
func (w *wire) travel() {
	w.mu.Lock()
	d := time.Duration(w.dice.IntN(5000)) * time.Microsecond
	w.mu.Unlock()
	time.Sleep(d) //nolint:forbidigo // a way takes its time
}

// name records the name of an engine's attempt in the history.
func (w *wire) name(a reprise.AttemptView, h held) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[w.owners[granted{a.ID(), a.Fence()}]] = h
}

func (w *wire) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	from := time.Now()
	w.travel()
	res, err := w.Store.Claim(ctx, r)
	w.travel()
	w.mu.Lock()
	defer w.mu.Unlock()
	_, again := w.names[r.Owner]
	switch {
	case res.Outcome != store.Claimed:
	case again:
		w.noted = append(w.noted, noted{
			r.Owner,
			input{kind: claim, print: r.Fingerprint, lease: r.Lease, policy: r.Policy},
			from, time.Now(),
			output{answer: answer{outcome: res.Outcome, attempt: res.Attempt}, fence: res.Fence},
		})
	default:
		w.owners[granted{r.ID, res.Fence}] = r.Owner
	}
	return res, err
}

func (w *wire) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	if w.closed[time.Since(w.began)/closedSpan] {
		return nil, fmt.Errorf("%w: closed", store.ErrUnavailable)
	}
	from := time.Now()
	w.travel()
	res, err := w.Store.Renew(ctx, rs)
	w.travel()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range res {
		w.noted = append(w.noted, noted{
			rs[i].Owner, input{kind: renew, lease: rs[i].Lease}, from, time.Now(), output{answer: answer{renewal: res[i]}},
		})
	}
	return res, err
}

func (w *wire) Complete(ctx context.Context, r store.CompleteRequest) error {
	w.travel()
	defer w.travel()
	return w.Store.Complete(ctx, r)
}

func (w *wire) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	w.travel()
	defer w.travel()
	return w.Store.Release(ctx, id, owner)
}

func (w *wire) Unknown(ctx context.Context, r store.UnknownRequest) error {
	w.travel()
	defer w.travel()
	return w.Store.Unknown(ctx, r)
}

// complement adds to a history the calls that the engine made on its own initiative.
func (s *engineStore) complement(h *recorder) {
	if s.wire == nil {
		return
	}
	s.wire.mu.Lock()
	defer s.wire.mu.Unlock()
	for _, n := range s.wire.noted {
		a, known := s.wire.names[n.owner]
		if !known {
			continue // an attempt that was released before its client knew of it
		}
		n.in.id, n.in.owner = a.id, a.owner
		n.out.at = window{h.at(n.from), h.at(n.to) + time.Microsecond}
		h.add(clients, n.in, n.out)
	}
}

// lapsing is a history of two engines whose leases are renewed and lapse. The clients
// call the store that wrap returns for an engine.
func lapsing(wrap func(*engineStore) store.Store) func(*testing.T, uint64) *recorder {
	return func(t *testing.T, seed uint64) (h *recorder) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			st := memstore.New()
			d := &deployment{
				stores: []store.Store{newWire(st, seed), newWire(st, seed+1)},
				pace:   pace{lease: shortLease, calls: 150, between: 400 * time.Millisecond, stalls: true},
			}
			d = engines(t, d)
			for i, store := range d.stores {
				d.stores[i] = wrap(store.(*engineStore))
			}
			h = history(t, d, seed)
		})
		return h
	}
}

// TestLapsingEnginesAreLinearizable: an engine that renews in time keeps its attempts,
// and one that cannot loses them to others, and tells its caller so.
func TestLapsingEnginesAreLinearizable(t *testing.T) {
	t.Parallel()
	checkedRuns(t, lapsing(func(s *engineStore) store.Store { return s }), append(everythingEngines, "takeover", "renewal renewed", "refused completion")...)
}

// follower is an engine that gives wrong results to those who join a claim.
type follower struct {
	*engineStore
	flaw  flaw
	mu    sync.Mutex
	joint map[store.ID]*joint
}

// joint is a claim that others may join.
type joint struct {
	print store.Fingerprint
	done  chan struct{}
	ended time.Time
	res   store.ClaimResult
	err   error
}

// The ways to answer a follower wrongly.
const (
	runsToo    flaw = "it runs as well"
	anyPrint   flaw = "whatever its fingerprint"
	afterwards flaw = "by a claim that has ended"
)

func (f *follower) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	f.mu.Lock()
	j := f.joint[r.ID]
	switch {
	case j == nil, !j.ended.IsZero() && (f.flaw != afterwards || time.Since(j.ended) > 300*time.Millisecond),
		j.print != r.Fingerprint && f.flaw != anyPrint:
		j = &joint{print: r.Fingerprint, done: make(chan struct{})}
		f.joint[r.ID] = j
		f.mu.Unlock()
		j.res, j.err = f.engineStore.Claim(ctx, r)
		f.mu.Lock()
		j.ended = time.Now()
		f.mu.Unlock()
		close(j.done)
		return j.res, j.err
	}
	f.mu.Unlock()
	<-j.done
	if j.res.Outcome == store.Claimed && f.flaw != runsToo {
		return store.ClaimResult{Outcome: store.InProgress}, nil
	}
	return j.res, j.err
}

// TestWrongResultsOfFollowersAreFound: a history shows the results of the followers of a
// shared claim.
func TestWrongResultsOfFollowersAreFound(t *testing.T) {
	t.Parallel()
	for _, f := range []flaw{runsToo, anyPrint, afterwards} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			foundInRuns(t, lapsing(func(s *engineStore) store.Store {
				return &follower{engineStore: s, flaw: f, joint: map[store.ID]*joint{}}
			}))
		})
	}
}
