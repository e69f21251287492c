package slots

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// TestSlotsAreGrantedInTurn: a caller that asks for the next slot gets it, otherwise the
// longest waiter does, and a caller that gives up leaves the line.
func TestSlotsAreGrantedInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := Slots{Limit: 2}
		var (
			mu    sync.Mutex
			order []int
		)
		for i := range 7 {
			go func() {
				limit := time.Hour
				if i == 3 {
					limit = time.Second
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				take := s.Take
				if i == 5 {
					take = s.TakeNext
				}
				err := take(ctx)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					i = -i
				}
				order = append(order, i)
			}()
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		if got := s.Usage()[0]; got != (store.Usage{Name: "slots", Used: 2, Limit: 2, Waiting: 4}) {
			t.Errorf("usage %+v", got)
		}
		for range 6 {
			s.Release()
			synctest.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		if want := []int{0, 1, -3, 5, 2, 4, 6}; !slices.Equal(order, want) {
			t.Errorf("slots were granted in the order %v, want %v", order, want)
		}
		if got := s.Usage()[0]; got.Used != 0 || got.Waiting != 0 {
			t.Errorf("usage at the end %+v", got)
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
				if s.Take(ctx) == nil {
					time.Sleep(time.Duration(i%5) * time.Millisecond)
					s.Release()
				}
			}()
		}
		synctest.Wait()
		time.Sleep(time.Second)
		if got := s.Usage()[0]; got.Used != 0 || got.Waiting != 0 {
			t.Errorf("usage at the end %+v", got)
		}
	})
}
