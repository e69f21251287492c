package batching

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// A sender that sends a batch once more begins its calls once more.
func TestACallIsBegunAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := New(Config[string]{Begins: true, Send: func(_ context.Context, batch []Sent[string]) {
			for range 2 {
				if !batch[0].Begin() {
					t.Error("a call whose caller waits is not begun")
				}
			}
			batch[0].Finish(nil)
			if batch[0].Begin() {
				t.Error("a finished call is begun")
			}
		}})
		c := q.Call()
		defer c.Release()
		if err := q.Do(t.Context(), c); err != nil {
			t.Error(err)
		}
	})
}

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

// A sender that forgets a call whose caller left does not keep its memory.
func TestAForgottenCallThatWasLeftIsUsedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		forget := make(chan struct{})
		q := New(Config[string]{
			Inline: never,
			Send:   func(context.Context, []Sent[string]) { <-forget },
		})
		ctx, cancel := context.WithCancel(t.Context())
		c := q.Call()
		returned := make(chan error)
		go func() { returned <- q.Do(ctx, c) }()
		synctest.Wait()
		cancel()
		if err := <-returned; !errors.Is(err, context.Canceled) {
			t.Errorf("the call returned %v", err)
		}
		c.Release()
		close(forget)
		synctest.Wait()
		if c.refs.Load() != 0 {
			t.Errorf("%d references are left", c.refs.Load())
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
