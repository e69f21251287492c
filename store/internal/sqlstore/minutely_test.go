package sqlstore

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestMinutelyReturnsTheEventsOfAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m Minutely
		for i, c := range []struct {
			after  time.Duration
			events int // 0 is not due
		}{{0, 1}, {0, 0}, {time.Minute - 1, 0}, {1, 3}, {0, 0}, {time.Hour, 2}} {
			time.Sleep(c.after)
			if events, due := m.Count(); events != c.events || due != (c.events > 0) {
				t.Errorf("event %d: %d, due %t; want %d", i, events, due, c.events)
			}
		}
	})
}
