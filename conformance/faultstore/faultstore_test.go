package faultstore_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/conformance/faultstore"
)

var errScripted = errors.New("scripted")

// counter is a store that counts the executed calls, and answers every claim with
// Completed and every renewal with Renewed.
type counter struct {
	mu       sync.Mutex
	executed map[faultstore.Op]int
	payloads []string
	ended    bool // an operation was executed with a context that had ended
}

func (c *counter) execute(ctx context.Context, op faultstore.Op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.executed == nil {
		c.executed = map[faultstore.Op]int{}
	}
	c.executed[op]++
	c.ended = c.ended || ctx.Err() != nil
}

func (c *counter) count(op faultstore.Op) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.executed[op]
}

func (c *counter) Claim(ctx context.Context, _ store.ClaimRequest) (store.ClaimResult, error) {
	c.execute(ctx, faultstore.Claim)
	return store.ClaimResult{Outcome: store.Completed}, nil
}

func (c *counter) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	c.execute(ctx, faultstore.Renew)
	return slices.Repeat([]store.RenewStatus{store.Renewed}, len(rs)), nil
}

func (c *counter) Complete(ctx context.Context, r store.CompleteRequest) error {
	c.execute(ctx, faultstore.Complete)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.payloads = append(c.payloads, string(r.Payload))
	return nil
}

func (c *counter) Unknown(ctx context.Context, _ store.UnknownRequest) error {
	c.execute(ctx, faultstore.Unknown)
	return nil
}

func (c *counter) Release(ctx context.Context, _ store.ID, _ store.Owner) error {
	c.execute(ctx, faultstore.Release)
	return nil
}

// operations calls each operation of a store, and reports whether its result was the zero
// value.
var operations = map[faultstore.Op]func(context.Context, store.Store) (zero bool, err error){
	faultstore.Claim: func(ctx context.Context, s store.Store) (bool, error) {
		r, err := s.Claim(ctx, store.ClaimRequest{ID: store.ID{1}, Owner: store.Owner{1}})
		return r.Outcome == 0, err
	},
	faultstore.Renew: func(ctx context.Context, s store.Store) (bool, error) {
		st, err := s.Renew(ctx, []store.RenewRequest{{ID: store.ID{1}, Owner: store.Owner{1}}})
		return st == nil, err
	},
	faultstore.Complete: func(ctx context.Context, s store.Store) (bool, error) {
		err := s.Complete(ctx, store.CompleteRequest{ID: store.ID{1}, Owner: store.Owner{1}})
		return err != nil, err
	},
	faultstore.Unknown: func(ctx context.Context, s store.Store) (bool, error) {
		err := s.Unknown(ctx, store.UnknownRequest{ID: store.ID{1}, Owner: store.Owner{1}, Reason: "timeout"})
		return err != nil, err
	},
	faultstore.Release: func(ctx context.Context, s store.Store) (bool, error) {
		err := s.Release(ctx, store.ID{1}, store.Owner{1})
		return err != nil, err
	},
}

func TestFaultDecidesExecutionAndReply(t *testing.T) {
	t.Parallel()
	const budget = 10 * time.Second // of the caller
	tests := []struct {
		name     string
		fault    faultstore.Fault
		want     error         // nil: the store's own result
		executed int           // when the call returned
		took     time.Duration // of the call
	}{
		{"pass", faultstore.Pass(), nil, 1, 0},
		{"zero value", faultstore.Fault{}, nil, 1, 0},
		{"fail before", faultstore.FailBefore(errScripted), errScripted, 0, 0},
		{"fail after", faultstore.FailAfter(errScripted), errScripted, 1, 0},
		{"lose reply", faultstore.LoseReply(), store.ErrUnknown, 1, 0},
		{"hang", faultstore.Hang(), store.ErrUnknown, 0, budget},
		{"hang after", faultstore.HangAfter(), store.ErrUnknown, 1, budget},
		{"delay", faultstore.Delay(time.Second), nil, 1, time.Second},
		{"delay longer than the caller waits", faultstore.Delay(time.Minute), store.ErrUnknown, 0, budget},
		{"execute late, caller gone", faultstore.ExecuteLate(time.Minute), store.ErrUnknown, 0, budget},
		{"execute late, caller waits", faultstore.ExecuteLate(time.Second), store.ErrUnknown, 1, budget},
		{"hold", faultstore.Hold(nil), store.ErrUnknown, 0, budget},
	}
	for _, tt := range tests {
		for op, call := range operations {
			t.Run(tt.name+"/"+op.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					inner := &counter{}
					store, faults := faultstore.New(inner)
					defer faults.Close()
					faults.Next(op, tt.fault)
					ctx, cancel := context.WithTimeout(t.Context(), budget)
					defer cancel()

					start := time.Now()
					zero, err := call(ctx, store)
					if !errors.Is(err, tt.want) || zero != (tt.want != nil) {
						t.Errorf("answer: zero %v, error %v, want error %v", zero, err, tt.want)
					}
					if got := inner.count(op); got != tt.executed {
						t.Errorf("executed %d times when the call returned, want %d", got, tt.executed)
					}
					if took := time.Since(start); took != tt.took {
						t.Errorf("took %v, want %v", took, tt.took)
					}

					if zero, err := call(t.Context(), store); err != nil || zero {
						t.Errorf("the next call: zero %v, error %v, want the store's own answer", zero, err)
					}
				})
			})
		}
	}
}

func TestExecuteLateOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &counter{}
		st, faults := faultstore.New(inner)
		defer faults.Close()
		faults.Next(faultstore.Complete, faultstore.ExecuteLate(time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		payload := []byte("answer")
		if err := st.Complete(ctx, store.CompleteRequest{Payload: payload}); !errors.Is(err, store.ErrUnknown) {
			t.Fatalf("error %v, want ErrUnknown", err)
		}
		copy(payload, "reused")

		start := time.Now()
		faults.Wait()
		if waited := time.Since(start); waited != 59*time.Second {
			t.Errorf("executed %v after the caller gave up, want 59s", waited)
		}
		if want := []string{"answer"}; !slices.Equal(inner.payloads, want) {
			t.Errorf("executed with the payloads %q, want %q", inner.payloads, want)
		}
		if inner.ended {
			t.Error("executed with a context that had ended")
		}
	})
}

func TestExecuteLateReturnsAfterExecutionWithoutDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &counter{}
		st, faults := faultstore.New(inner)
		defer faults.Close()
		faults.Next(faultstore.Release, faultstore.ExecuteLate(time.Minute))

		start := time.Now()
		err := st.Release(context.Background(), store.ID{}, store.Owner{}) //nolint:usetesting // a context that cannot end
		if !errors.Is(err, store.ErrUnknown) || time.Since(start) != time.Minute || inner.count(faultstore.Release) != 1 {
			t.Errorf("error %v after %v with %d executions", err, time.Since(start), inner.count(faultstore.Release))
		}
	})
}

func TestCloseDropsLateExecutionsAndEndsHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &counter{}
		st, faults := faultstore.New(inner)
		faults.Always(faultstore.Renew, faultstore.Hang())
		faults.Next(faultstore.Release, faultstore.ExecuteLate(time.Hour))

		answers := make(chan error, 2)
		go func() {
			_, err := st.Renew(t.Context(), nil)
			answers <- err
		}()
		go func() { answers <- st.Release(t.Context(), store.ID{}, store.Owner{}) }()
		synctest.Wait()
		faults.Close()
		for range 2 {
			if err := <-answers; !errors.Is(err, store.ErrUnknown) {
				t.Errorf("error %v, want ErrUnknown", err)
			}
		}
		if n := inner.count(faultstore.Release); n != 0 {
			t.Errorf("%d late executions after Close", n)
		}

		faults.Always(faultstore.Renew, faultstore.Hang())
		if _, err := st.Renew(t.Context(), nil); err != nil {
			t.Errorf("a call after Close: %v, want it forwarded", err)
		}
		faults.Close()
	})
}

func TestLetGoEndsOnlyTheCallsThatHangNow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &counter{}
		st, faults := faultstore.New(inner)
		defer faults.Close()
		faults.Always(faultstore.Renew, faultstore.Hang())

		answers := make(chan error, 2)
		renew := func() {
			_, err := st.Renew(t.Context(), nil)
			answers <- err
		}
		for range 2 {
			go renew()
			synctest.Wait()
			if len(answers) != 0 {
				t.Fatal("the call did not hang")
			}
			faults.LetGo()
			if err := <-answers; !errors.Is(err, store.ErrUnknown) {
				t.Errorf("error %v, want ErrUnknown", err)
			}
		}
	})
}

func TestWaitingCallIsNotExecutedAfterItsContextEnded(t *testing.T) {
	t.Parallel()
	inner := &counter{}
	st, faults := faultstore.New(inner)
	open := make(chan struct{})
	close(open)
	faults.Always(faultstore.Claim, faultstore.Hold(open))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // a choice between both would show
		if _, err := st.Claim(ctx, store.ClaimRequest{}); !errors.Is(err, store.ErrUnknown) || !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v, want ErrUnknown and context.Canceled", err)
		}
	}
	if n := inner.count(faultstore.Claim); n != 0 {
		t.Errorf("%d executions", n)
	}
}

func TestPanicReachesTheCaller(t *testing.T) {
	t.Parallel()
	inner := &counter{}
	st, faults := faultstore.New(inner)
	faults.Next(faultstore.Claim, faultstore.Panic("boom"))
	defer func() {
		if v := recover(); v != "boom" || inner.count(faultstore.Claim) != 0 {
			t.Errorf("recovered %v with %d executions, want boom and 0", v, inner.count(faultstore.Claim))
		}
	}()
	_, _ = st.Claim(t.Context(), store.ClaimRequest{})
}
