package transactional

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// TestAttemptEndsAtItsDeadline: from that instant on it cannot commit.
func TestAttemptEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &attempt{number: 2, fence: 7, deadline: time.Now().Add(time.Second)}
		if got := a.result(); got.Outcome != store.Claimed || !got.Atomic || got.Attempt != 2 || got.Fence != 7 || got.Remaining != time.Second {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Second - time.Nanosecond) //nolint:forbidigo // in a bubble
		if a.over() {
			t.Error("it is over before its deadline")
		}
		time.Sleep(time.Nanosecond) //nolint:forbidigo // in a bubble
		if !a.over() {
			t.Error("it is not over at its deadline")
		}
		early := &attempt{deadline: time.Now().Add(time.Hour)}
		early.expired.Store(true)
		if !early.over() {
			t.Error("an attempt whose connection the watchdog closed is not over")
		}
	})
}

// TestWatchdogClosesTheConnection: at the deadline of its attempt, and not once the
// connection went back to the pool.
func TestWatchdogClosesTheConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, closed := range []bool{false, true} {
			ours, servers := net.Pipe()
			a := &attempt{session: &wire.Session{Socket: ours}, deadline: time.Now().Add(time.Second)}
			a.start()
			a.mu.Lock()
			a.closed = closed
			a.mu.Unlock()
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
			synctest.Wait()
			_ = servers.SetReadDeadline(time.Now())
			_, err := servers.Read(make([]byte, 1))
			if ended := errors.Is(err, io.EOF); ended == closed || a.expired.Load() == closed {
				t.Errorf("closed %t: the connection ended: %t, expired: %t", closed, ended, a.expired.Load())
			}
			_ = ours.Close()
		}
		stopped := &attempt{session: &wire.Session{}, deadline: time.Now().Add(time.Second)}
		stopped.start()
		stopped.stopWatchdog()
		time.Sleep(time.Hour) //nolint:forbidigo // in a bubble
		if stopped.expired.Load() {
			t.Error("a watchdog that was stopped ended the attempt")
		}
	})
}
