package reprise_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// The tests of this file show that no reference to an ended attempt affects the next
// attempt on the same operation, or the next request: a renewal that is out, the
// attempt's own handler, an observer, the background. Package protocol tests the
// references of handlers and clients.

// answeredHere fails the test unless a duplicate of the attempt is answered without a
// call to the store.
func (b *bench) answeredHere(t *testing.T, asked *atomic.Int64) {
	t.Helper()
	before := asked.Load()
	b.want(t, order("k"), reprise.InProgress)
	if asked.Load() != before {
		t.Error("the table of the process has forgotten the attempt")
	}
}

// counted forwards the claims of b, and counts them.
func counted(b *bench) (claims *atomic.Int64) {
	claims = new(atomic.Int64)
	b.store.onClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
		claims.Add(1)
		return b.store.Store.Claim(ctx, r)
	}
	return claims
}

func TestLateRenewalDoesNotAffectTheNextAttempt(t *testing.T) {
	for _, status := range []store.RenewStatus{store.Renewed, store.RenewBusy, store.RenewCompleted, store.RenewLost} {
		inTimeNamed(t, status.String(), func(t *testing.T) {
			b := setup(t, reprise.Config{})
			asked := counted(b)
			sent, answer := make(chan struct{}), make(chan struct{})
			var once sync.Once
			b.store.onRenew = func(ctx context.Context, rs []store.RenewRequest) (statuses []store.RenewStatus, err error) {
				statuses, err = b.store.Store.Renew(ctx, rs)
				once.Do(func() {
					close(sent)
					<-answer
					statuses, err = []store.RenewStatus{status}, nil
				})
				return statuses, err
			}
			a := b.claim(t, order("k"))
			<-sent
			release(t, a)
			next := b.claim(t, order("k"))
			close(answer)
			wantCause(t, next.Context(), nil)
			b.answeredHere(t, asked)
			time.Sleep(5 * lease)
			wantCause(t, next.Context(), nil)
			b.answeredHere(t, asked)
			if n := b.Stats().Running; n != 1 {
				t.Errorf("%d leases are kept, want 1", n)
			}
			complete(t, next, "answer", reprise.EndRecorded)
			b.events.wantCount(t, "lease-lost", 0)
		})
	}
}

func TestLateObserverDoesNotSeeTheNextRequest(t *testing.T) {
	inTime(t, func(t *testing.T) {
		sent, answer := make(chan struct{}), make(chan struct{})
		var late reprise.Event
		var trace any
		var once sync.Once
		b := setup(t, reprise.Config{
			Detach: func(ctx context.Context) context.Context {
				return context.WithValue(context.Background(), traceKey{}, ctx.Value(traceKey{})) //nolint:usetesting // nothing of the request or the test
			},
			Observer: reprise.ObserverFunc(func(ctx context.Context, e reprise.Event) {
				if e.Name() == "renewed" {
					once.Do(func() {
						close(sent)
						<-answer
						late, trace = e, ctx.Value(traceKey{})
					})
				}
			}),
		})
		request := &recycled{Context: context.WithValue(t.Context(), traceKey{}, "first"), t: t}
		res, err := b.Begin(request, order("k"))
		if err != nil || res.Outcome != reprise.Claimed {
			t.Fatal(res.Outcome, err)
		}
		first := res.Attempt.View()
		<-sent
		release(t, res.Attempt)
		request.over.Store(true)
		next, err := b.Begin(context.WithValue(t.Context(), traceKey{}, "second"), order("k"))
		if err != nil || next.Outcome != reprise.Claimed {
			t.Fatal(next.Outcome, err)
		}
		close(answer)
		synctest.Wait()
		if trace != "first" || late.Fence != first.Fence() || late.Fence == next.Attempt.View().Fence() {
			t.Errorf("observed fence %d with the values of %v, want those of the first request, %d", late.Fence, trace, first.Fence())
		}
		release(t, next.Attempt)
	})
}
