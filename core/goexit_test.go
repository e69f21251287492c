package reprise_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// exits returns how many of the next calls of the store, where a test does not replace
// them, end their goroutines, after they were executed or before. At first it is none.
func (b *bench) exits(executed bool) (calls *atomic.Int64) {
	calls = new(atomic.Int64)
	st := b.store.Store
	exit := func(execute func()) {
		if calls.Add(-1) < 0 {
			return
		}
		if executed {
			execute()
		}
		runtime.Goexit()
	}
	if b.store.OnClaim == nil {
		b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			exit(func() { _, _ = st.Claim(ctx, r) })
			return st.Claim(ctx, r)
		}
	}
	if b.store.OnRenew == nil {
		b.store.OnRenew = func(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			exit(func() { _, _ = st.Renew(ctx, rs) })
			return st.Renew(ctx, rs)
		}
	}
	b.store.OnComplete = func(ctx context.Context, r store.CompleteRequest) error {
		exit(func() { _ = st.Complete(ctx, r) })
		return st.Complete(ctx, r)
	}
	b.store.OnRelease = func(ctx context.Context, id store.ID, owner store.Owner) error {
		exit(func() { _ = st.Release(ctx, id, owner) })
		return st.Release(ctx, id, owner)
	}
	b.store.OnUnknown = func(ctx context.Context, r store.UnknownRequest) error {
		exit(func() { _ = st.Unknown(ctx, r) })
		return st.Unknown(ctx, r)
	}
	return calls
}

// ends runs f in a goroutine, and reports whether f returned before that has ended.
func ends(f func()) (returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
		returned = true
	}()
	<-done
	return returned
}

// attemptEnds are the ways to end an attempt, with the outcome that a retry gets.
var attemptEnds = map[string]struct {
	end   func(*reprise.Attempt)
	retry reprise.Outcome
}{
	"completion": {func(a *reprise.Attempt) { _, _ = a.Complete(reprise.Completion{Payload: []byte("answer")}) }, reprise.Replayed},
	"release":    {func(a *reprise.Attempt) { _ = a.Release() }, reprise.Claimed},
	"unknown":    {func(a *reprise.Attempt) { _ = a.Unknown("the bank timed out") }, reprise.Lapsed},
}

// wantEnded fails the test unless a retry of an attempt that has ended gets the outcome,
// and no part of the attempt is left.
func (b *bench) wantEnded(t *testing.T, op reprise.Operation, outcome reprise.Outcome) {
	t.Helper()
	synctest.Wait()
	if s := b.Stats(); s.Running != 0 || s.Leases != 0 || s.Background != 0 {
		t.Errorf("%d run, %d leases are kept and %d tasks held, want none", s.Running, s.Leases, s.Background)
	}
	if retry := b.want(t, op, outcome); retry.Attempt != nil {
		release(t, retry.Attempt)
	}
}

// A request whose goroutine the store ends leaves neither a claim nor an attempt behind.
func TestStoreThatEndsTheGoroutineOfARequestHoldsNoKey(t *testing.T) {
	for _, executed := range []bool{false, true} {
		for _, preset := range presets {
			inTimeNamed(t, fmt.Sprint("a claim, executed ", executed, ", ", preset), func(t *testing.T) {
				b := setup(t, reprise.Config{})
				op := order("k")
				op.Preset = preset
				b.exits(executed).Store(1)
				if ends(func() { _, _ = b.Begin(t.Context(), op) }) {
					t.Error("Begin returned")
				}
				time.Sleep(2 * budget)
				b.wantEnded(t, op, reprise.Claimed)
				if n := b.Stats().Outcomes[reprise.Unavailable]; n != 1 {
					t.Errorf("%d requests are counted as unavailable, want 1", n)
				}
			})
		}
		for name, c := range attemptEnds {
			inTimeNamed(t, fmt.Sprint("a ", name, ", executed ", executed), func(t *testing.T) {
				b := setup(t, reprise.Config{})
				calls := b.exits(executed)
				a := b.claim(t, order("k"))
				calls.Store(1)
				if ends(func() { c.end(a) }) {
					t.Error("the end returned")
				}
				time.Sleep(budget)
				b.wantEnded(t, order("k"), c.retry)
			})
		}
	}
}

// The goroutine of a request that an observer ends, at any of its events, leaves neither
// a claim nor an attempt behind.
func TestObserverThatEndsTheGoroutineHoldsNoKey(t *testing.T) {
	for name, c := range map[string]struct {
		refused int // calls that the store refuses
		end     func(*reprise.Attempt)
		retry   reprise.Outcome
	}{
		"claimed":     {end: func(*reprise.Attempt) { panic("nothing runs") }, retry: reprise.Claimed},
		"completed":   {end: attemptEnds["completion"].end, retry: reprise.Replayed},
		"released":    {end: attemptEnds["release"].end, retry: reprise.Claimed},
		"unknown":     {end: attemptEnds["unknown"].end, retry: reprise.Lapsed},
		"store-error": {1, attemptEnds["completion"].end, reprise.Replayed},
		"unrecorded":  {100, attemptEnds["completion"].end, reprise.Replayed},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			seen := &events{}
			var exits atomic.Bool
			exits.Store(true)
			bad := reprise.ObserverFunc(func(_ context.Context, e reprise.Event) {
				if e.Name() == name && exits.Load() {
					runtime.Goexit()
				}
			})
			b := setup(t, reprise.Config{Observer: reprise.Observers(bad, seen)})
			refused := c.refused
			b.store.OnComplete = func(ctx context.Context, r store.CompleteRequest) error {
				if refused--; refused >= 0 {
					return store.ErrUnavailable
				}
				return b.store.Store.Complete(ctx, r)
			}
			if ends(func() { c.end(b.claim(t, order("k"))) }) {
				t.Error("returned")
			}
			exits.Store(false)
			time.Sleep(5 * time.Minute)
			b.wantEnded(t, order("k"), c.retry)
			if seen.count(name) == 0 {
				t.Error("the observer behind it was not called")
			}
			seen.wantCounted(t, b.Stats())
		})
	}
}

// Each waiting caller is on its own when the store ends the goroutine of one.
func TestWatchThatEndsTheGoroutineLeavesTheOthersWaiting(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var exited atomic.Bool
		e := newEngine(t, &watched{Store: b.store, watch: func(context.Context, store.ID) (<-chan struct{}, func(), error) {
			if !exited.Swap(true) {
				runtime.Goexit()
			}
			return nil, func() { panic("a bug in the store") }, nil
		}}, nil, reprise.Config{})
		a := b.claim(t, order("k"))
		var s answers
		s.begin(t.Context(), e, wait(order("k"), time.Minute), 5)
		time.Sleep(time.Second)
		complete(t, a, "answer", reprise.EndRecorded)
		s.Wait()
		s.want(t, reprise.Replayed, 4)
		if s := e.Stats(); s.Waiting != 0 || s.Outcomes[reprise.Unavailable] != 1 {
			t.Errorf("%d wait, and the outcomes are %v", s.Waiting, s.Outcomes)
		}
	})
}

func TestMaintenanceThatDoesNotReturnIsLogged(t *testing.T) {
	for says, maintain := range map[string]func(context.Context){
		"the store panicked: broken":   func(context.Context) { panic("broken") },
		"the call ended its goroutine": func(context.Context) { runtime.Goexit() },
	} {
		inTimeNamed(t, says, func(t *testing.T) {
			var log bytes.Buffer
			st := &maintained{memstore.New(), maintain}
			e := newEngine(t, st, nil, reprise.Config{Log: slog.New(slog.NewTextHandler(&log, nil)), MaxRun: -1})
			release(t, must(e.Begin(t.Context(), order("k"))).Attempt)
			if err := closeWithin(t, e, time.Second); err != nil || !strings.Contains(log.String(), says) {
				t.Errorf("%v, and logged %s", err, &log)
			}
		})
	}
}

// An observer that ended the goroutine of the queue left the events behind that came
// after, for ever.
func TestObserverThatEndsTheGoroutineOfTheQueueIsCalledAgain(t *testing.T) {
	inTime(t, func(t *testing.T) {
		var renewed atomic.Int64
		b := setup(t, reprise.Config{Observer: reprise.ObserverFunc(func(_ context.Context, e reprise.Event) {
			if e.Name() == "renewed" {
				renewed.Add(1)
				runtime.Goexit()
			}
		})})
		attempts := []*reprise.Attempt{b.claim(t, order("0")), b.claim(t, order("1"))}
		time.Sleep(10 * lease)
		synctest.Wait()
		if s := b.Stats(); s.EventsQueued != 0 || renewed.Load() < 50 {
			t.Errorf("%d renewals were observed, and %d events wait", renewed.Load(), s.EventsQueued)
		}
		for _, a := range attempts {
			release(t, a)
		}
	})
}

// A renewal that ended its goroutine, as FailNow does in a test double, was the last one
// of its engine.
func TestStoreThatEndsTheGoroutineOfARenewalIsAskedAgain(t *testing.T) {
	for _, executed := range []bool{false, true} {
		inTimeNamed(t, fmt.Sprint("executed ", executed), func(t *testing.T) {
			b := setup(t, reprise.Config{})
			calls := b.exits(executed)
			attempts := []*reprise.Attempt{b.claim(t, order("0")), b.claim(t, order("1"))}
			calls.Store(5)
			time.Sleep(10 * lease)
			for i, a := range attempts {
				wantCause(t, a.Context(), nil)
				setupOver(t, b.store.Store, reprise.Config{}).want(t, order(strconv.Itoa(i)), reprise.InProgress)
				complete(t, a, "answer", reprise.EndRecorded)
			}
			if n := b.events.count("store-error"); n < 5 {
				t.Errorf("%d failures were reported, want one for each attempt and renewal", n)
			}
		})
	}
}
