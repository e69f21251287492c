package slots

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlotsAreGrantedInTurn: the longest waiter gets the next slot, a claim that gives up
// leaves the queue, and a slot that is granted to one that gives up in the same moment
// goes on.
func TestSlotsAreGrantedInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := Slots{Limit: 2}
		for n := range 3 {
			place, start := s.Enqueue(), time.Now()
			if got := place.Within(time.Millisecond); got != (n < 2) || !got && time.Since(start) != time.Millisecond {
				t.Fatalf("slot %d of 2: %t after %v", n+1, got, time.Since(start))
			}
			if n == 2 {
				s.Leave(place)
			}
		}
		var (
			mu    sync.Mutex
			order []int
		)
		for i := range 5 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				if i == 1 {
					ctx, cancel = context.WithTimeout(t.Context(), time.Second)
				}
				defer cancel()
				err := s.Take(ctx, s.Enqueue())
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					order = append(order, i)
				} else {
					order = append(order, -i)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		if got := s.Stats(); got != (Stats{Slots: 2, InUse: 2, Waiting: 4, LongestWait: 2 * time.Second}) {
			t.Errorf("statistics %+v", got)
		}
		for range 6 {
			s.Release()
			synctest.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		want := []int{-1, 0, 2, 3, 4}
		for i := range want {
			if i >= len(order) || order[i] != want[i] {
				t.Fatalf("slots were granted in the order %v, want %v", order, want)
			}
		}
		if got := s.Stats(); got.InUse != 0 || got.Waiting != 0 || got.LongestWait != 2*time.Second {
			t.Errorf("statistics at the end %+v", got)
		}
	})
}

// TestSlotsSurviveCancellation: whatever happens at once, no slot is lost and none is
// given twice.
func TestSlotsSurviveCancellation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := Slots{Limit: 3}
		for i := range 200 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%7)*time.Millisecond)
				defer cancel()
				place := s.Enqueue()
				if i%3 == 0 && !place.Within(time.Duration(i%4)*time.Millisecond) {
					s.Leave(place)
					return
				}
				if s.Take(ctx, place) == nil {
					time.Sleep(time.Duration(i%5) * time.Millisecond)
					s.Release()
				}
			}()
		}
		synctest.Wait()
		time.Sleep(time.Second)
		if got := s.Stats(); got.InUse != 0 || got.Waiting != 0 {
			t.Errorf("statistics at the end %+v", got)
		}
	})
}
