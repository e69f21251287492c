package batching

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// road is a queue whose sender stops with every batch until the test lets it go on, and
// the batches that it sent.
type road struct {
	*Queue[string]
	free chan struct{} // receives once for each batch that may go on
	send func(ctx context.Context, batch []Sent[string])

	mu   sync.Mutex
	sent []string // the values of each batch, in order
	ctxs []context.Context
}

// newRoad returns a road that finishes the calls of a batch when it may go on. A test may
// replace send, which is called then.
func newRoad(c Config[string]) *road {
	r := &road{free: make(chan struct{}), send: finishAll}
	c.Send = func(ctx context.Context, batch []Sent[string]) {
		var values []string
		for _, s := range batch {
			values = append(values, *s.Value())
		}
		r.mu.Lock()
		r.sent, r.ctxs = append(r.sent, strings.Join(values, "+")), append(r.ctxs, ctx)
		r.mu.Unlock()
		select {
		case <-r.free:
		case <-ctx.Done():
		}
		r.send(ctx, batch)
	}
	r.Queue = New(c)
	return r
}

// onRoad runs a test with a road, in a bubble. Its lanes are idle in the end.
func onRoad(t *testing.T, c Config[string], test func(t *testing.T, r *road)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad(c)
		test(t, r)
		r.idle(t)
	})
}

func finishAll(_ context.Context, batch []Sent[string]) {
	for _, s := range batch {
		s.Finish(nil)
	}
}

// want compares the batches that were sent.
func (r *road) want(t *testing.T, batches ...string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.sent, batches) {
		t.Errorf("sent %q, want %q", r.sent, batches)
	}
}

// pass lets n batches go on, one after the other.
func (r *road) pass(n int) {
	for range n {
		r.free <- struct{}{}
		synctest.Wait()
	}
}

// idle checks that every lane is free, and that no call waits.
func (r *road) idle(t *testing.T) {
	t.Helper()
	synctest.Wait()
	r.Queue.mu.Lock()
	defer r.Queue.mu.Unlock()
	if r.busy != 0 || r.waiting != 0 || r.first != nil || r.last != nil {
		t.Errorf("at the end %d lanes are busy and %d calls wait (%v, %v)", r.busy, r.waiting, r.first, r.last)
	}
}

// drive is a call in its own goroutine.
type drive struct {
	returned chan struct{}
	err      error
}

func (r *road) drive(ctx context.Context, value string) *drive { return r.driveSized(ctx, value, 1) }

func (r *road) driveSized(ctx context.Context, value string, size int) *drive {
	d := &drive{returned: make(chan struct{}), err: fmt.Errorf("the goroutine of %s ended", value)}
	go func() {
		defer close(d.returned)
		c := r.Call()
		defer c.Release()
		c.Value, c.Size = value, size
		d.err = r.Do(ctx, c)
	}()
	synctest.Wait()
	return d
}

// back reports whether the call has returned.
func (d *drive) back() bool {
	synctest.Wait()
	select {
	case <-d.returned:
		return true
	default:
		return false
	}
}

// want checks that the call has returned, and with which error.
func (d *drive) want(t *testing.T, err func(error) bool) {
	t.Helper()
	if !d.back() {
		t.Error("the call has not returned")
	} else if !err(d.err) {
		t.Errorf("the call returned %v", d.err)
	}
}

func isNil(err error) bool { return err == nil }
