package batching

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// A caller that has its answer does not keep a batch on its way that all others left.
func TestTheLastUnansweredCallerEndsTheBatch(t *testing.T) {
	t.Parallel()
	onRoad(t, Config[string]{}, func(t *testing.T, r *road) {
		var ended atomic.Bool
		r.send = func(ctx context.Context, batch []Sent[string]) {
			batch[0].Finish(nil)
			if len(batch) == 2 {
				<-ctx.Done()
				ended.Store(true)
			}
		}
		first := r.drive(t.Context(), "a")
		ctx, cancel := context.WithCancel(t.Context())
		second, third := r.drive(t.Context(), "b"), r.drive(ctx, "c")
		r.pass(2)
		first.want(t, isNil)
		second.want(t, isNil)
		if third.back() || ended.Load() {
			t.Fatal("the batch ended before the last caller left")
		}
		cancel()
		third.want(t, func(err error) bool { return errors.Is(err, context.Canceled) })
		if !ended.Load() {
			t.Error("nobody waits, and the batch goes on")
			r.send = finishAll
		}
	})
}

func TestErrorsSayWhetherTheCallWasSent(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		&Error{Err: context.Canceled}:                       "the call was not sent: context canceled",
		&Error{Sent: true, Err: context.Canceled}:           "the call was sent, but not answered: context canceled",
		&Error{Sent: true, Err: &PanicError{Value: "oops"}}: "the call was sent, but not answered: the sender panicked: oops",
		&Error{Err: &PanicError{}}:                          "the call was not sent: the sender ended its goroutine",
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}
