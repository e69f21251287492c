package reprise_test

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// Every transition is reported once, with its data.
func TestEveryTransitionIsReportedOnce(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{MaxRun: lease / 2})
		other := setupOver(t, b.store.Store, reprise.Config{})
		var down atomic.Bool
		b.store.OnRenew = func(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			if down.Load() {
				return statuses(len(rs), store.RenewLost), nil
			}
			return b.store.Store.Renew(ctx, rs)
		}
		b.store.OnComplete = func(ctx context.Context, r store.CompleteRequest) error {
			if string(r.Payload) == "corrupt" {
				return store.ErrCorrupt
			}
			return b.store.Store.Complete(ctx, r)
		}

		a := b.claim(t, order("k"))
		b.want(t, order("k"), reprise.InProgress)
		changed := order("k")
		changed.Fingerprint[0]++
		b.want(t, changed, reprise.Mismatch)
		time.Sleep(lease * 5 / 12) // a renewal
		time.Sleep(lease / 12)     // MaxRun
		synctest.Wait()
		complete(t, a, "answer", reprise.EndRecorded)
		b.want(t, order("k"), reprise.Replayed)
		release(t, b.claim(t, order("released")))

		lapsed := overtake(t, other, order("lapsed"))
		refused := order("lapsed")
		refused.MaxAttempts = 1
		b.want(t, refused, reprise.Lapsed)
		second := b.claim(t, order("lapsed"))
		down.Store(true)
		time.Sleep(lease * 5 / 12)
		complete(t, second, "corrupt", reprise.EndUnrecorded)
		complete(t, lapsed, "late", reprise.EndContested)

		b.events.want(t,
			"claimed", "in-progress", "mismatch", "renewed", "run-too-long",
			"completed", "replayed", "claimed", "released",
			"lapsed", "takeover", "lease-lost", "store-error", "unrecorded")
		for _, e := range b.events.list {
			wantErr := e.Name() == "store-error" || e.Name() == "unrecorded"
			if (e.Err != nil) != wantErr {
				t.Errorf("%v: error %v", e.Name(), e.Err)
			}
			wantAttempt := map[string]int{
				"in-progress": 0, "mismatch": 0, "replayed": 0, "lapsed": 0,
				"takeover": 2, "lease-lost": 2, "store-error": 2, "unrecorded": 2,
			}
			want, ok := wantAttempt[e.Name()]
			if !ok {
				want = 1
			}
			if e.Attempt != want || (e.Fence > 0) != (want > 0) {
				t.Errorf("%v: attempt %d, fence %d", e.Name(), e.Attempt, e.Fence)
			}
			if e.Name() == "completed" && e.Elapsed != lease/2 {
				t.Errorf("completed after %v", e.Elapsed)
			}
			if len(e.Scope) != 12 || e.Scope == "tenant" {
				t.Errorf("%v: scope %q", e.Name(), e.Scope)
			}
		}
		if b.events.list[0].ID != idOf(order("k")) {
			t.Error("another ID")
		}
	})
}

// recycled is the context of a request in a framework that uses it again for the next
// one. Looking at its values after its request is a bug.
type recycled struct {
	context.Context
	t    *testing.T
	over atomic.Bool
}

func (r *recycled) Value(key any) any {
	if r.over.Load() {
		r.t.Errorf("%v was looked up after the request", key)
	}
	return r.Context.Value(key)
}

func TestObserverSeesTheValuesOfTheRequestAndLaterOnlyThoseThatWereDetached(t *testing.T) {
	for name, detach := range map[string]func(context.Context) context.Context{
		"nothing detached": nil,
		"a trace": func(ctx context.Context) context.Context {
			return context.WithValue(context.Background(), traceKey{}, ctx.Value(traceKey{})) //nolint:usetesting // nothing of the request or the test
		},
		"a panic": func(context.Context) context.Context { panic("a bug in Detach") },
		"nil":     func(context.Context) context.Context { return nil },
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			var mu sync.Mutex
			traces := make(map[string]any)
			b := setup(t, reprise.Config{Detach: detach, Observer: reprise.ObserverFunc(func(ctx context.Context, e reprise.Event) {
				mu.Lock()
				defer mu.Unlock()
				traces[e.Name()] = ctx.Value(traceKey{})
			})})
			var later any
			b.store.OnRelease = func(ctx context.Context, _ store.ID, _ store.Owner) error {
				later = ctx.Value(traceKey{})
				return store.ErrUnavailable
			}
			ctx, leave := client(t)
			request := &recycled{Context: ctx, t: t}
			a := begun(t, request, b)
			leave()
			derived, cancel := context.WithCancel(a.Context()) // package context looks for parents in the values
			defer cancel()
			time.Sleep(lease / 2)
			_ = a.Release()
			request.over.Store(true)
			time.Sleep(time.Minute)
			b.store.Heal()
			time.Sleep(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			var want any
			if name == "a trace" {
				want = "trace"
			}
			if traces["claimed"] != "trace" {
				t.Error("the request's own event has no trace")
			}
			for _, kind := range []string{"renewed", "store-error", "released"} {
				if got, ok := traces[kind]; !ok || got != want {
					t.Errorf("%v: observed %t, trace %v, want %v", kind, ok, got, want)
				}
			}
			wantCause(t, derived, context.Canceled)
			if later != want {
				t.Errorf("the store sees the trace %v after the request, want %v", later, want)
			}
		})
	}
}

// buffer is a log that may be written to by many.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements [io.Writer].
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
