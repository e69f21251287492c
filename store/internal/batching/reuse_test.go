package batching

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Finishing a call again, after it was finished and is used for another request, has no
// effect.
func TestAStaleSentFinishesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all []Sent[string]
		over := make(chan struct{})
		q := New(Config[string]{Detached: true, Send: func(_ context.Context, batch []Sent[string]) { all = append(all, batch...); <-over }})
		c := q.Call()
		do := func() chan error {
			returned := make(chan error, 1)
			go func() { returned <- q.Do(t.Context(), c) }()
			synctest.Wait()
			return returned
		}
		first := do()
		if !all[0].Finish(nil) || <-first != nil {
			t.Error("the first call did not end")
		}
		over <- struct{}{}
		c.Release()
		c.refs.Store(1) // as if the pool had returned it
		second := do()
		if all[0].Finish(errors.New("stale")) || len(second) != 0 {
			t.Errorf("a stale Sent finished another call: %v", <-second)
		}
		if !all[1].Finish(nil) || <-second != nil || all[1].Begin() {
			t.Error("the second call did not end, or was begun afterwards")
		}
		c.Release()
		if all[1].Finish(errors.New("stale")) {
			t.Error("a stale Sent finished a call that was released")
		}
		close(over)
	})
}

// Until a sender begins a call, its caller can withdraw it although the sender has it.
// The memory of the call is not used again before its sender has finished or forgot it.
func TestACallIsWithdrawnUntilItIsBegun(t *testing.T) {
	t.Parallel()
	for _, begins := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			connected, begun := make(chan struct{}), make(chan struct{})
			var sent []string
			q := New(Config[string]{Begins: true, Detached: true, Send: func(_ context.Context, batch []Sent[string]) {
				if begins {
					for _, s := range batch {
						s.Begin()
					}
				}
				<-connected
				for _, s := range batch {
					if s.Begin() {
						sent = append(sent, *s.Value())
					}
					if begins && (s.Finish(nil) || s.Finish(errors.New("again"))) {
						t.Error("somebody waited for an abandoned call")
					}
				}
				close(begun)
			}})
			ctx, cancel := context.WithCancel(t.Context())
			c := q.Call()
			c.Value = "a"
			returned := make(chan error)
			go func() { returned <- q.Do(ctx, c) }()
			synctest.Wait()
			cancel()
			if err := <-returned; !ended(begins, context.Canceled)(err) {
				t.Errorf("begun %v: the call returned %v", begins, err)
			}
			if c.Release(); c.refs.Load() != 1 {
				t.Errorf("begun %v: %d references, want that of the sender", begins, c.refs.Load())
			}
			close(connected)
			<-begun
			if len(sent) != 0 {
				t.Errorf("begun %v: sent %q, which was abandoned", begins, sent)
			}
			synctest.Wait()
			if c.refs.Load() != 0 {
				t.Errorf("begun %v: %d references at the end", begins, c.refs.Load())
			}
		})
	}
}

// A sender that panics before it begins a call has not sent it. One that sends its batch
// once more begins its calls once more.
func TestWhatWasNotBegunWasNotSent(t *testing.T) {
	t.Parallel()
	q := New(Config[string]{Begins: true, Send: func(_ context.Context, batch []Sent[string]) {
		for range 2 { // as where a command is sent again
			if *batch[0].Value() == "begun" && !batch[0].Begin() {
				t.Error("a call whose caller waits is not begun")
			}
		}
	}})
	for value, want := range map[string]bool{"begun": true, "not": false} {
		c := q.Call()
		c.Value = value
		if err := q.Do(t.Context(), c); !ended(want, ErrUnfinished)(err) {
			t.Errorf("%s: %v", value, err)
		}
		c.Release()
	}
}

// Every call ends once, and with its own answer, while contexts end at any moment: the
// race detector sees to the rest.
func TestEveryCallGetsItsOwnAnswer(t *testing.T) {
	t.Parallel()
	type value struct{ asked, answered int }
	for name, c := range map[string]Config[value]{
		"lanes":  {Lanes: 3, PerLane: 2, Patience: 20 * time.Microsecond},
		"yields": {Yields: 2, Detached: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Send = func(ctx context.Context, batch []Sent[value]) {
				select {
				case <-time.After(time.Duration(len(batch)) * 10 * time.Microsecond):
				case <-ctx.Done():
				}
				for _, s := range batch {
					v := s.Value()
					v.answered = v.asked + 1
					s.Finish(nil)
				}
			}
			q := New(c)
			var calling sync.WaitGroup
			var answered, left atomic.Int64
			for caller := range 32 {
				calling.Go(func() {
					for i := range 200 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(50+i)*time.Microsecond)
						call := q.Call()
						call.Value = value{asked: caller*1000 + i}
						var e *Error
						switch err := q.Do(ctx, call); {
						case err == nil && call.Value.answered == caller*1000+i+1:
							answered.Add(1)
						case errors.As(err, &e) && errors.Is(err, context.DeadlineExceeded):
							left.Add(1)
						default:
							t.Errorf("call %d: answer %d, %v", i, call.Value.answered, err)
						}
						call.Release()
						cancel()
					}
				})
			}
			calling.Wait()
			t.Logf("%d answered, %d left", answered.Load(), left.Load())
			q.mu.Lock()
			defer q.mu.Unlock()
			if q.waiting != 0 || q.first != nil {
				t.Errorf("%d calls wait at the end", q.waiting)
			}
		})
	}
}

// A call that is sent alone does not allocate.
func TestCostACallAllocatesNothing(t *testing.T) { //nolint:paralleltest // counts allocations
	if raceEnabled {
		t.Skip("the race detector allocates; make figures runs it without")
	}
	q := New(Config[int]{Yields: 2, Send: func(_ context.Context, batch []Sent[int]) {
		for _, s := range batch {
			s.Finish(nil)
		}
	}})
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		c := q.Call()
		if err := q.Do(ctx, c); err != nil {
			t.Error(err)
		}
		c.Release()
	}); n > 0 {
		t.Errorf("%v allocations for a call", n)
	}
}
