package reprise_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// answers collects the results of Begin's callers.
type answers struct {
	sync.WaitGroup
	mu   sync.Mutex
	list []answer
}

type answer struct {
	reprise.Result
	err   error
	after time.Duration
}

// begin lets n more callers begin op, and returns when they all wait or have their
// answer.
func (s *answers) begin(ctx context.Context, e *reprise.Engine, op reprise.Operation, n int) {
	for range n {
		s.Go(func() {
			start := time.Now()
			res, err := e.Begin(ctx, op)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.list = append(s.list, answer{res, err, time.Since(start)})
		})
	}
	synctest.Wait()
}

// of returns the results with an outcome; zero: the errors.
func (s *answers) of(outcome reprise.Outcome) (list []answer) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.list {
		if a.Outcome == outcome {
			list = append(list, a)
		}
	}
	return list
}

func (s *answers) want(t *testing.T, outcome reprise.Outcome, n int) []answer {
	t.Helper()
	list := s.of(outcome)
	if len(list) != n {
		t.Fatalf("%d callers were answered %v, want %d", len(list), outcome, n)
	}
	return list
}

func (s *answers) none(t *testing.T) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) > 0 {
		t.Fatalf("%d callers have an answer, the first %v", len(s.list), s.list[0])
	}
}

func TestAllWaitersGetTheReplay(t *testing.T) {
	for name, local := range map[string]bool{"of this process": true, "of another": false} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			runner := b
			if !local {
				runner = setupOver(t, b.store.Store, reprise.Config{})
			}
			asked := counted(b)
			a := runner.claim(t, order("k"))
			var s answers
			s.begin(t.Context(), b.Engine, wait(order("k"), time.Minute), 50)
			time.Sleep(20 * time.Second)
			s.none(t)
			asked.Store(0)
			complete(t, a, "answer", reprise.EndRecorded)
			if local {
				synctest.Wait() // no poll is needed
			} else {
				time.Sleep(500 * time.Millisecond * 5 / 4) // the longest pause between polls
			}
			for _, got := range s.want(t, reprise.Replayed, 50) {
				if string(got.Payload) != "answer" {
					t.Errorf("replayed %q", got.Payload)
				}
			}
			b.events.wantCount(t, "replayed", 50)
			if n := asked.Load(); n != 1 {
				t.Errorf("the store was asked %d times, want once for the whole queue", n)
			}
		})
	}
}

func TestWaitersShareOnePoll(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		held := setupOver(t, b.store.Store, reprise.Config{}).claim(t, order("k"))
		var claims, out, most atomic.Int64
		b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			claims.Add(1)
			most.Store(max(most.Load(), out.Add(1)))
			defer out.Add(-1)
			time.Sleep(time.Millisecond)
			return b.store.Store.Claim(ctx, r)
		}
		var s answers
		s.begin(t.Context(), b.Engine, wait(order("k"), time.Minute), 50)
		time.Sleep(time.Second)
		most.Store(0)
		before := claims.Load()
		time.Sleep(10 * time.Second)
		if n := claims.Load() - before; n < 15 || n > 30 {
			t.Errorf("%d polls in 10s, want about 20: one every 500ms", n)
		}
		if most.Load() != 1 {
			t.Errorf("%d polls at once", most.Load())
		}
		release(t, held)
		time.Sleep(time.Second)
		b.store.Heal() // before the next one asks: its claim would sleep while all others wait for it
		release(t, s.want(t, reprise.Claimed, 1)[0].Attempt)
		for n := 2; n <= 50; n++ {
			synctest.Wait()
			claimed := s.want(t, reprise.Claimed, n)
			release(t, claimed[n-1].Attempt)
		}
	})
}

// A client leaves while the claim of its waiter is on its way.
func TestClaimGrantedToAClientThatLeftIsReleased(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		other := setupOver(t, b.store.Store, reprise.Config{})
		held := other.claim(t, order("k"))
		client, leave := context.WithCancel(t.Context())
		var granted atomic.Bool
		b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			res, err := b.store.Store.Claim(ctx, r)
			if res.Outcome == store.Claimed {
				granted.Store(true)
				leave()
			}
			return res, err
		}
		var s answers
		s.begin(client, b.Engine, wait(order("k"), time.Minute), 1)
		release(t, held)
		time.Sleep(time.Second)
		s.want(t, reprise.InProgress, 1)
		if !granted.Load() {
			t.Fatal("the claim was not granted")
		}
		release(t, other.claim(t, order("k")))
	})
}

func TestCloseWakesWaiters(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		a := b.claim(t, order("k"))
		other := setupOver(t, b.store.Store, reprise.Config{}).claim(t, order("elsewhere"))
		claims := counted(b)
		var s answers
		s.begin(t.Context(), b.Engine, wait(order("k"), time.Hour), 20)
		s.begin(t.Context(), b.Engine, wait(order("elsewhere"), time.Hour), 20)
		before := claims.Load()
		var closed sync.WaitGroup
		closed.Go(func() {
			if err := closeWithin(t, b.Engine, time.Minute); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		for _, got := range s.want(t, reprise.Unavailable, 40) {
			wantError(t, "a waiter", got.err, store.ErrClosed)
		}
		_, err := b.Begin(t.Context(), order("new"))
		wantError(t, "a new operation", err, store.ErrClosed)
		if n := claims.Load() - before; n > 0 {
			t.Errorf("%d claims after Close", n)
		}
		complete(t, a, "answer", reprise.EndRecorded)
		release(t, other)
		closed.Wait()
	})
}

// A store with a push must know which attempts have waiters.
func TestOnlyClaimsOfWaitersAreMarked(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		held := setupOver(t, b.store.Store, reprise.Config{}).claim(t, order("k"))
		var waiting []bool
		b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			waiting = append(waiting, r.Waiting)
			return b.store.Store.Claim(ctx, r)
		}
		b.want(t, order("k"), reprise.InProgress)
		b.want(t, wait(order("k"), time.Second), reprise.InProgress)
		if len(waiting) < 4 || waiting[0] || waiting[1] || slices.Contains(waiting[2:], false) {
			t.Errorf("%v, want false for a request that does not wait and for the first look of one that does, then true", waiting)
		}
		release(t, held)
	})
}

// A waiter whose policy fails open gets no error because the first in the queue got one,
// and does not run beside the attempt that it waits for.
func TestWaitersThatFailOpenWaitApart(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		held := setupOver(t, b.store.Store, reprise.Config{}).claim(t, order("k"))
		var down atomic.Bool
		b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			if down.Load() {
				return store.ClaimResult{}, store.ErrUnavailable
			}
			return b.store.Store.Claim(ctx, r)
		}
		var closed, opened answers
		ctx, leave := context.WithCancel(t.Context())
		closed.begin(ctx, b.Engine, wait(order("k"), time.Minute), 1)
		opened.begin(t.Context(), b.Engine, wait(open(order("k")), time.Minute), 1)
		down.Store(true)
		time.Sleep(10 * time.Second)
		leave()
		closed.Wait()
		opened.want(t, reprise.InProgress, 1)
		b.store.Heal()
		release(t, held)
	})
}

// watched is a store with the ability to wait, and a script for it.
type watched struct {
	store.Store
	watch func(ctx context.Context, id store.ID) (<-chan struct{}, func(), error)
}

func (w *watched) Watch(ctx context.Context, id store.ID) (<-chan struct{}, func(), error) {
	return w.watch(ctx, id)
}

func TestWatchIsAHint(t *testing.T) {
	for name, watch := range map[string]func(ctx context.Context, id store.ID) (<-chan struct{}, func(), error){
		"that is closed": func(context.Context, store.ID) (<-chan struct{}, func(), error) {
			ch := make(chan struct{})
			close(ch)
			return ch, func() {}, nil
		},
		"that fails": func(context.Context, store.ID) (<-chan struct{}, func(), error) {
			return nil, nil, store.ErrUnavailable
		},
		"that panics":    func(context.Context, store.ID) (<-chan struct{}, func(), error) { panic("a bug in the store") },
		"that is silent": func(context.Context, store.ID) (<-chan struct{}, func(), error) { return nil, func() {}, nil },
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			e := newEngine(t, &watched{Store: b.store, watch: watch}, nil, reprise.Config{})
			a := b.claim(t, order("k"))
			var s answers
			s.begin(t.Context(), e, wait(order("k"), time.Minute), 3)
			time.Sleep(5 * time.Second)
			s.none(t)
			complete(t, a, "answer", reprise.EndRecorded)
			time.Sleep(time.Second)
			s.want(t, reprise.Replayed, 3)
		})
	}
}

func TestWatchIsStopped(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var open, watches atomic.Int64
		e := newEngine(t, &watched{Store: b.store, watch: func(context.Context, store.ID) (<-chan struct{}, func(), error) {
			open.Add(1)
			watches.Add(1)
			return make(chan struct{}), func() { open.Add(-1) }, nil
		}}, nil, reprise.Config{})
		a := b.claim(t, order("k"))
		var s answers
		s.begin(t.Context(), e, wait(order("k"), time.Second), 3)
		if open.Load() != 1 {
			t.Errorf("%d watches, want the head's", open.Load())
		}
		time.Sleep(2 * time.Second)
		s.want(t, reprise.InProgress, 3)
		if open.Load() != 0 || watches.Load() == 0 {
			t.Errorf("%d of %d watches are left open", open.Load(), watches.Load())
		}
		release(t, a)
	})
}

func TestWaitLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits reprise.WaitLimits
		same   int // of 4 that wait for one key
		scope  int // of 4 more, each for another key of the scope
		all    int // of 4 more, each of another scope
	}{
		{"per key", reprise.WaitLimits{PerKey: 2}, 2, 4, 4},
		{"per scope", reprise.WaitLimits{PerScope: 3}, 3, 0, 4},
		{"total", reprise.WaitLimits{Total: 5}, 4, 1, 0},
	} {
		inTimeNamed(t, c.name, func(t *testing.T) {
			b := setup(t, reprise.Config{Waiting: c.limits})
			var s answers
			begin := func(scope, key string) {
				op := order(key)
				op.Scope = scope
				if res := must(b.Begin(t.Context(), op)); res.Attempt != nil {
					t.Cleanup(func() { _ = res.Attempt.Release() })
				}
				s.begin(t.Context(), b.Engine, wait(op, time.Second), 1)
			}
			refused := 0
			more := func(what string, want int) {
				t.Helper()
				list := s.of(reprise.InProgress)
				for _, got := range list[refused:] {
					if got.after != 0 {
						t.Errorf("refused after %v, want at once", got.after)
					}
				}
				if waiting := 4 - (len(list) - refused); waiting != want {
					t.Errorf("%d of 4 wait for %s, want %d", waiting, what, want)
				}
				refused = len(list)
			}
			for range 4 {
				begin("tenant", "k")
			}
			more("one key", c.same)
			for i := range 4 {
				begin("tenant", strconv.Itoa(i))
			}
			more("one scope", c.scope)
			for i := range 4 {
				begin("tenant"+strconv.Itoa(i), "k")
			}
			more("any", c.all)

			time.Sleep(time.Second) // they have all left
			refused = len(s.of(reprise.InProgress))
			if refused != 12 {
				t.Fatalf("%d answers, want 12", refused)
			}
			for range 4 {
				begin("tenant", "k")
			}
			more("one key", c.same)
			s.Wait()
		})
	}
}
