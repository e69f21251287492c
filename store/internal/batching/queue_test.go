package batching

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestWhatArrivesMeanwhileGoesTogether(t *testing.T) {
	t.Parallel()
	onRoad(t, Config[string]{}, func(t *testing.T, r *road) {
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
	})
}

// A call that was not sent is known not to have been executed.
func TestACallThatWaitsIsWithdrawn(t *testing.T) {
	t.Parallel()
	onRoad(t, Config[string]{}, func(t *testing.T, r *road) {
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
	})
}

func notSent(cause error) func(error) bool { return ended(false, cause) }

func unanswered(cause error) func(error) bool { return ended(true, cause) }

func ended(sent bool, cause error) func(error) bool {
	return func(err error) bool {
		var e *Error
		return errors.As(err, &e) && e.Sent == sent && errors.Is(err, cause) &&
			err.Error() == map[bool]string{false: "the call was not sent: ", true: "the call was sent, but not answered: "}[sent]+cause.Error()
	}
}

// A late call fails alone, whether it is the oldest of its batch or not, and the
// others get their answers.
func TestALateCallFailsAlone(t *testing.T) {
	t.Parallel()
	for late := range 3 {
		onRoad(t, Config[string]{}, func(t *testing.T, r *road) {
			r.drive(t.Context(), "a")
			soon, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var calls []*drive
			for i := range 3 {
				ctx := t.Context()
				if i == late {
					ctx = soon
				}
				calls = append(calls, r.drive(ctx, "b"))
			}
			r.pass(1)
			time.Sleep(2 * time.Second)
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
		})
	}
}

// ending is a context that has ended, and has not told so yet.
type ending struct {
	context.Context
	ended atomic.Bool
}

func (e *ending) Err() error {
	if e.ended.Load() {
		return context.Canceled
	}
	return nil
}

// Calls that have left before their batch was sent are not in it, and a batch of none is
// not sent.
func TestACallThatLeftBeforeItsBatchIsSentIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, others := range []int{0, 1} {
		onRoad(t, Config[string]{}, func(t *testing.T, r *road) {
			r.drive(t.Context(), "a")
			ctx := &ending{Context: t.Context()}
			left := r.drive(ctx, "b") // its goroutine has not noticed when the batch is made up
			want := []string{"a"}
			for range others {
				r.drive(t.Context(), "c")
				want = append(want, "c")
			}
			ctx.ended.Store(true)
			r.pass(1 + others)
			left.want(t, notSent(context.Canceled))
			r.want(t, want...)
			if err := r.Do(ctx, r.Call()); !notSent(context.Canceled)(err) {
				t.Errorf("a call whose context has ended returned %v", err)
			}
		})
	}
}

// The first of a batch leaves when its own time is over, and not when the batch is
// answered.
func TestTheOldestDoesNotSendForTheOthers(t *testing.T) {
	t.Parallel()
	onRoad(t, Config[string]{Yields: 1}, func(t *testing.T, r *road) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.busy = 1 // the two meet in the batch that the first makes up
		first, second := r.drive(ctx, "a"), r.drive(t.Context(), "b")
		go r.lead(ctx, r.first)
		r.want(t, "a+b")
		time.Sleep(2 * time.Second)
		first.want(t, unanswered(context.DeadlineExceeded))
		r.pass(1)
		second.want(t, isNil)
	})
}

// A batch is bounded, and the oldest of all calls that wait are in the next one.
func TestABatchIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		config Config[string]
		sizes  []int
		want   []string
	}{
		{"calls", Config[string]{MaxCalls: 2}, []int{1, 1, 1, 1, 1}, []string{"a", "b+c", "d+e", "f"}},
		{"bytes", Config[string]{}, []int{maxBytes - 6, 6, 1, maxBytes - 1, 1}, []string{"a", "b+c", "d+e", "f"}},
		{"at least one", Config[string]{}, []int{maxBytes + 1, 1, maxBytes + 1}, []string{"a", "b", "c", "d"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onRoad(t, c.config, func(t *testing.T, r *road) {
				r.drive(t.Context(), "a")
				var calls []*drive
				for i, size := range c.sizes {
					calls = append(calls, r.driveSized(t.Context(), string(rune('b'+i)), size))
				}
				r.pass(len(c.want))
				for _, d := range calls {
					d.want(t, isNil)
				}
				r.want(t, c.want...)
			})
		})
	}
}

// A call that has less time than Patience does not wait for a lane, and no other waits
// longer for one whose batch hangs.
func TestNoCallWaitsLongForALane(t *testing.T) {
	t.Parallel()
	onRoad(t, Config[string]{Patience: time.Second}, func(t *testing.T, r *road) {
		r.drive(t.Context(), "a")
		time.Sleep(2 * time.Nanosecond)
		patient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		waits := r.drive(patient, "b")
		hasty, cancel := context.WithTimeout(t.Context(), time.Second-1)
		defer cancel()
		quick := r.drive(hasty, "c")
		r.want(t, "a", "c")
		time.Sleep(time.Second - 1)
		quick.want(t, isNil) // its context was that of the sender
		r.want(t, "a", "c", "b")
		r.pass(2)
		waits.want(t, isNil)
	})
}

// Another lane opens when more than PerLane calls wait for each that is busy, and closes
// when fewer do.
func TestLanesOpenWithTheCallsThatWait(t *testing.T) {
	t.Parallel()
	onRoad(t, Config[string]{Lanes: 3, PerLane: 2}, func(t *testing.T, r *road) {
		drive := func(n int) {
			for range n {
				r.drive(t.Context(), "a")
			}
		}
		drive(3)
		r.want(t, "a") // two wait for one lane
		drive(1)
		r.want(t, "a", "a+a+a") // three did
		drive(4)
		r.want(t, "a", "a+a+a") // four wait for two lanes
		drive(1)
		r.want(t, "a", "a+a+a", "a+a+a+a+a")
		drive(20)
		r.want(t, "a", "a+a+a", "a+a+a+a+a") // there is no fourth
		r.config.MaxCalls = 15
		r.pass(1) // a lane takes 15 of the 20, and 5 wait for three
		r.pass(1) // and those
		r.pass(1)
		if r.busy != 2 {
			t.Errorf("%d lanes are busy, want those of the last two batches", r.busy)
		}
		drive(1)
		if len(r.sent) != 5 {
			t.Errorf("sent %q: one call waits for two lanes", r.sent)
		}
		r.pass(3)
	})
}

// With yields, calls that are made at the same time share a batch although a lane is
// free: sooner or later, since the scheduler decides how many callers arrive meanwhile.
func TestYieldsLetABatchGrow(t *testing.T) {
	t.Parallel()
	for end := time.Now().Add(time.Minute); ; {
		r := newRoad(Config[string]{Yields: 1000})
		const n = 8
		done := make(chan error)
		for range n {
			go func() {
				c := r.Call()
				defer c.Release()
				done <- r.Do(t.Context(), c)
			}()
		}
		close(r.free)
		for range n {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if len(r.sent) < n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d calls take %d batches for a minute", n, n)
		}
	}
}

// The sender of a batch ends a call with an error and the others with none.
func TestAnErrorConcernsTheCallThatItIsGivenTo(t *testing.T) {
	t.Parallel()
	onRoad(t, Config[string]{}, func(t *testing.T, r *road) {
		refused := errors.New("refused")
		r.send = func(_ context.Context, batch []Sent[string]) {
			for _, s := range batch {
				var err error
				if *s.Value() == "c" {
					err = refused
				}
				s.Finish(err)
				s.Finish(errors.New("again")) // does not count
			}
		}
		a, b, c, d := r.drive(t.Context(), "a"), r.drive(t.Context(), "b"), r.drive(t.Context(), "c"), r.drive(t.Context(), "d")
		r.pass(2)
		for _, call := range []*drive{a, b, d} {
			call.want(t, isNil)
		}
		c.want(t, func(err error) bool { return errors.Is(err, refused) })
	})
}

// Whatever the sender does, every call ends and the lane is free.
func TestASenderThatFailsKeepsNothing(t *testing.T) {
	t.Parallel()
	isPanic := func(err error) bool {
		var e *Error
		var p *PanicError
		return errors.As(err, &e) && e.Sent && errors.As(err, &p) && p.Error() == "the sender panicked: trouble" && len(p.Stack) > 0
	}
	isExit := func(err error) bool {
		var p *PanicError
		return errors.As(err, &p) && p.Error() == "the sender ended its goroutine"
	}
	for _, c := range []struct {
		name  string
		trick func([]Sent[string])
		want  func(error) bool
		exits bool // an inline Do does not return
	}{
		{"panics", func([]Sent[string]) { panic("trouble") }, isPanic, false},
		{"ends its goroutine", func([]Sent[string]) { runtime.Goexit() }, isExit, true},
		{"forgets", func([]Sent[string]) {}, unanswered(ErrUnfinished), false},
	} {
		onRoad(t, Config[string]{}, func(t *testing.T, r *road) {
			r.send = func(_ context.Context, batch []Sent[string]) { c.trick(batch) }
			alone := r.drive(t.Context(), "a")
			r.pass(1)
			if c.exits != (alone.back() && alone.err.Error() == "the goroutine of a ended") {
				t.Errorf("%s: inline, the call returned %v", c.name, alone.err)
			} else if !c.exits {
				alone.want(t, c.want)
			}
			r.idle(t)

			r.drive(t.Context(), "a")
			r.send = func(ctx context.Context, batch []Sent[string]) {
				if *batch[0].Value() == "a" || *batch[0].Value() == "d" {
					finishAll(ctx, batch)
					return
				}
				batch[0].Finish(nil)
				c.trick(batch)
			}
			first, second, third := r.drive(t.Context(), "b"), r.drive(t.Context(), "c"), r.drive(t.Context(), "c")
			r.pass(1)
			next := r.drive(t.Context(), "d")
			r.pass(2)
			first.want(t, isNil)
			second.want(t, c.want)
			third.want(t, c.want)
			next.want(t, isNil)
		})
	}
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
