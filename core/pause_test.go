package reprise_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// sick lets a store refuse everything but claims, and counts its calls.
func sick(b *bench) (asked *atomic.Int64) {
	asked = new(atomic.Int64)
	b.store.onRenew = func(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) {
		return nil, store.ErrUnavailable
	}
	b.store.onComplete = func(context.Context, store.CompleteRequest) error { asked.Add(1); return store.ErrUnavailable }
	b.store.onRelease = func(context.Context, store.ID, store.Owner) error { asked.Add(1); return store.ErrUnavailable }
	b.store.onUnknown = func(context.Context, store.UnknownRequest) error { asked.Add(1); return store.ErrUnavailable }
	return asked
}

// leaveBehind lets n attempts complete in vain, one after each pause, so that the
// background has their ends.
func leaveBehind(t *testing.T, b *bench, n int, pause time.Duration) {
	t.Helper()
	var completing sync.WaitGroup
	for i := range n {
		a := b.claim(t, order("left "+strconv.Itoa(i)))
		completing.Go(func() { _, _ = a.Complete(reprise.Completion{Payload: []byte("answer")}) })
		time.Sleep(pause)
	}
	completing.Wait()
}

// When tasks reach the age at which they are given up, the pause between tries stays: 300
// completions were dropped within one second, and the store was back in the next one.
func TestTasksAreGivenUpAtTheRateOfTheirTries(t *testing.T) {
	inTime(t, func(t *testing.T) {
		const tasks, age = 300, time.Minute
		b := setup(t, reprise.Config{Background: reprise.BackgroundLimits{Age: age}})
		sick(b)
		start := time.Now()
		leaveBehind(t, b, tasks, 0)
		time.Sleep(time.Until(start.Add(age + budget + 10*time.Second)))
		synctest.Wait()
		dropped := b.Stats().BackgroundDropped
		if dropped == 0 || dropped > 15 {
			t.Errorf("%d were given up within ten seconds, want about one a second", dropped)
		}
		b.store.heal()
		time.Sleep(5 * time.Second)
		if s := b.Stats(); s.Ends[reprise.EndRecorded] != tasks-s.BackgroundDropped || s.Background != 0 {
			t.Errorf("%d were recorded and %d given up, and %d are left", s.Ends[reprise.EndRecorded], s.BackgroundDropped, s.Background)
		}
	})
}
