package batching

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatArrivesMeanwhileGoesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad(Config[string]{})
		first := r.drive(t.Context(), "a")
		others := []*drive{r.drive(t.Context(), "b"), r.drive(t.Context(), "c"), r.drive(t.Context(), "d")}
		r.want(t, "a")
		r.pass(1)
		first.want(t, isNil)
		r.want(t, "a", "b+c+d")
		for _, d := range others {
			if d.back() {
				t.Error("returned before it was answered")
			}
		}
		last := r.drive(t.Context(), "e")
		r.pass(1)
		for _, d := range others {
			d.want(t, isNil)
		}
		r.pass(1)
		last.want(t, isNil)
		r.want(t, "a", "b+c+d", "e")
		r.idle(t)
	})
}

// A call that was not sent is known not to have been executed.
func TestACallThatWaitsIsWithdrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad(Config[string]{})
		r.drive(t.Context(), "a")
		ctx, cancel := context.WithCancel(t.Context())
		var calls []*drive
		for _, at := range []context.Context{ctx, t.Context(), ctx, t.Context(), ctx} {
			calls = append(calls, r.drive(at, "b"))
		}
		cancel()
		for i, d := range calls {
			if i%2 == 0 {
				d.want(t, notSent(context.Canceled))
			}
		}
		r.pass(2)
		calls[1].want(t, isNil)
		calls[3].want(t, isNil)
		r.want(t, "a", "b+b")
		r.idle(t)
	})
}

func notSent(cause error) func(error) bool { return ended(false, cause) }

func unanswered(cause error) func(error) bool { return ended(true, cause) }

func ended(sent bool, cause error) func(error) bool {
	return func(err error) bool {
		var e *Error
		return errors.As(err, &e) && e.Sent == sent && errors.Is(err, cause)
	}
}

// Whoever is late fails alone, whether it is the oldest of its batch or not, and the
// others get their answers.
func TestALateCallFailsAlone(t *testing.T) {
	t.Parallel()
	for late := range 3 {
		synctest.Test(t, func(t *testing.T) {
			r := newRoad(Config[string]{})
			r.drive(t.Context(), "a")
			var calls []*drive
			for i := range 3 {
				ctx := t.Context()
				if i == late {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Second)
					defer cancel()
				}
				calls = append(calls, r.drive(ctx, "b"))
			}
			r.pass(1)
			time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of the bubble
			calls[late].want(t, unanswered(context.DeadlineExceeded))
			if r.ctxs[1].Err() != nil {
				t.Error("the context of the batch ended with that of one call")
			}
			r.pass(1)
			for i, d := range calls {
				if i != late {
					d.want(t, isNil)
				}
			}
			r.idle(t)
		})
	}
}

// A batch that nobody waits for ends, and its lane is free.
func TestTheLastCallerEndsTheBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad(Config[string]{})
		r.drive(t.Context(), "a")
		ctx, cancel := context.WithCancel(t.Context())
		b, c := r.drive(ctx, "b"), r.drive(ctx, "c")
		r.pass(1)
		cancel()
		b.want(t, unanswered(context.Canceled))
		c.want(t, unanswered(context.Canceled))
		r.want(t, "a", "b+c")
		r.idle(t)
	})
}
