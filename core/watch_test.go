package reprise_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// watched is a store with the ability to wait, and a script for it.
type watched struct {
	store.Store
	watch func(ctx context.Context, id store.ID) (<-chan struct{}, func(), error)
}

func (w *watched) Watch(ctx context.Context, id store.ID) (<-chan struct{}, func(), error) {
	return w.watch(ctx, id)
}

func TestPushShortensTheWait(t *testing.T) {
	inTime(t, func(t *testing.T) {
		st := memstore.New()
		b := setupOver(t, st, reprise.Config{})
		e := newEngine(t, st, nil, reprise.Config{}) // which has the store's ability
		a := b.claim(t, order("k"))
		var s answers
		s.begin(t.Context(), e, wait(order("k"), time.Minute), 10)
		time.Sleep(10*time.Second + 1)
		complete(t, a, "answer", reprise.EndRecorded)
		s.want(t, reprise.Replayed, 10) // in the same instant
	})
}

func TestWatchIsAHint(t *testing.T) {
	for name, watch := range map[string]func(ctx context.Context, id store.ID) (<-chan struct{}, func(), error){
		"that is closed": func(context.Context, store.ID) (<-chan struct{}, func(), error) {
			ch := make(chan struct{})
			close(ch)
			return ch, func() {}, nil
		},
		"that fails": func(context.Context, store.ID) (<-chan struct{}, func(), error) {
			return nil, nil, store.ErrUnavailable
		},
		"that panics":    func(context.Context, store.ID) (<-chan struct{}, func(), error) { panic("a bug in the store") },
		"that is silent": func(context.Context, store.ID) (<-chan struct{}, func(), error) { return nil, func() {}, nil },
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			e := newEngine(t, &watched{Store: b.store, watch: watch}, nil, reprise.Config{})
			a := b.claim(t, order("k"))
			var s answers
			s.begin(t.Context(), e, wait(order("k"), time.Minute), 3)
			time.Sleep(5 * time.Second)
			s.none(t)
			complete(t, a, "answer", reprise.EndRecorded)
			time.Sleep(time.Second)
			s.want(t, reprise.Replayed, 3)
		})
	}
}

func TestWatchIsStopped(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var open, watches atomic.Int64
		e := newEngine(t, &watched{Store: b.store, watch: func(context.Context, store.ID) (<-chan struct{}, func(), error) {
			open.Add(1)
			watches.Add(1)
			return make(chan struct{}), func() { open.Add(-1) }, nil
		}}, nil, reprise.Config{})
		a := b.claim(t, order("k"))
		var s answers
		s.begin(t.Context(), e, wait(order("k"), time.Second), 3)
		if open.Load() != 1 {
			t.Errorf("%d watches, want the head's", open.Load())
		}
		time.Sleep(2 * time.Second)
		s.want(t, reprise.InProgress, 3)
		if open.Load() != 0 || watches.Load() == 0 {
			t.Errorf("%d of %d watches are left open", open.Load(), watches.Load())
		}
		release(t, a)
	})
}
