package reprise_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// maintained is a store with recurring work.
type maintained struct {
	store.Store
	maintain func(context.Context)
}

func (m *maintained) Maintain(ctx context.Context) { m.maintain(ctx) }

// TestEngineMaintainsItsStore: from its first operation, once for all of them, until
// Close, which waits for the end. A store without such work gets no goroutine, which the
// bubbles of the other tests show.
func TestEngineMaintainsItsStore(t *testing.T) {
	inTime(t, func(t *testing.T) {
		var began, ended int
		st := &maintained{memstore.New(), func(ctx context.Context) {
			began++
			<-ctx.Done()
			time.Sleep(time.Second)
			ended++
		}}
		e := newEngine(t, &decorator{st}, nil, reprise.Config{})
		synctest.Wait()
		if began != 0 {
			t.Errorf("%d goroutines before the first operation", began)
		}
		for _, key := range []string{"a", "b"} {
			res := must(e.Begin(t.Context(), order(key)))
			release(t, res.Attempt)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if began != 1 || ended != 0 {
			t.Errorf("after two operations and a day %d goroutines began and %d ended, want one that runs", began, ended)
		}
		start := time.Now()
		if err := closeWithin(t, e, time.Hour); err != nil || ended != 1 || time.Since(start) != time.Second {
			t.Errorf("Close returned %v after %v, want the end of the goroutine after a second", err, time.Since(start))
		}
	})
}

// TestCloseLeavesMaintenanceThatHangs: a store that does not obey its context delays
// Close until the context of Close ends.
func TestCloseLeavesMaintenanceThatHangs(t *testing.T) {
	inTime(t, func(t *testing.T) {
		hang := make(chan struct{})
		defer close(hang)
		e := newEngine(t, &maintained{memstore.New(), func(context.Context) { <-hang }}, nil, reprise.Config{})
		res := must(e.Begin(t.Context(), order("k")))
		release(t, res.Attempt)
		start := time.Now()
		if err := closeWithin(t, e, time.Minute); err != nil || time.Since(start) != time.Minute {
			t.Errorf("Close returned %v after %v, want none after a minute", err, time.Since(start))
		}
	})
}

// TestPanicInMaintenanceEndsItAlone: the engine goes on.
func TestPanicInMaintenanceEndsItAlone(t *testing.T) {
	inTime(t, func(t *testing.T) {
		e := newEngine(t, &maintained{memstore.New(), func(context.Context) { panic(errors.New("broken")) }}, nil, reprise.Config{})
		for _, key := range []string{"a", "b"} {
			res := must(e.Begin(t.Context(), order(key)))
			release(t, res.Attempt)
			synctest.Wait()
		}
	})
}

// decorator wraps a store and intercepts no call.
type decorator struct{ store.Store }

// Unwrap returns the wrapped store.
func (d *decorator) Unwrap() store.Store { return d.Store }
