package reprisepg

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// TestUndecidedOwnersAreForgotten: an owner whose call has no answer is remembered while
// its transaction may still be open, and not for ever.
func TestUndecidedOwnersAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &TransactionalStore{records: records{config: Config{TxTimeout: time.Minute}}, undecided: map[store.Owner]time.Time{}}
		first, second, third := store.NewOwner(), store.NewOwner(), store.NewOwner()
		s.setUndecided(first)
		time.Sleep(2 * time.Minute) //nolint:forbidigo // in a bubble
		s.setUndecided(second)
		if !s.isUndecided(first) || !s.isUndecided(second) || s.isUndecided(third) {
			t.Error("after twice TxTimeout an owner is forgotten, or one is there that was never undecided")
		}
		time.Sleep(time.Nanosecond) //nolint:forbidigo // in a bubble
		s.setUndecided(third)
		if s.isUndecided(first) || !s.isUndecided(second) || !s.isUndecided(third) {
			t.Error("after more than twice TxTimeout an owner is still there, or a later one is not")
		}
		s.setDecided(second)
		if s.isUndecided(second) || !s.isUndecided(third) {
			t.Error("a decision about one owner is not about that one")
		}
	})
}

// TestAnAttemptIsFoundByBothItsNames: neither another operation nor another owner gets
// it, and it is taken once.
func TestAnAttemptIsFoundByBothItsNames(t *testing.T) {
	t.Parallel()
	a := &attempt{id: store.ID{1}, owner: store.NewOwner()}
	s := &TransactionalStore{attempts: map[store.Owner]*attempt{a.owner: a}}
	for _, other := range []struct {
		id    store.ID
		owner store.Owner
	}{{store.ID{2}, a.owner}, {a.id, store.NewOwner()}} {
		if s.find(other.id, other.owner) != nil || s.take(other.id, other.owner) != nil {
			t.Error("an attempt is found under another name")
		}
		if ctx := s.Bind(t.Context(), other.id, other.owner); attemptOf(ctx) != nil {
			t.Error("another attempt is bound")
		}
	}
	if s.find(a.id, a.owner) != a || attemptOf(s.Bind(t.Context(), a.id, a.owner)) != a || s.take(a.id, a.owner) != a || s.take(a.id, a.owner) != nil {
		t.Error("an attempt is not found, or taken twice")
	}
}

// TestALockIsWaitedForWithinTheDeadline: with time left for the answer, and never not at
// all.
func TestALockIsWaitedForWithinTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if got := lockWait(t.Context()); got != lostCommitWait {
			t.Errorf("without a deadline: %v", got)
		}
		for left, want := range map[time.Duration]time.Duration{
			time.Second: 900 * time.Millisecond, 150 * time.Millisecond: 50 * time.Millisecond,
			149 * time.Millisecond: 50 * time.Millisecond, 0: 50 * time.Millisecond,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), left)
			if got := lockWait(ctx); got != want {
				t.Errorf("with %v left: %v, want %v", left, got, want)
			}
			cancel()
		}
	})
}

// TestAnAttemptEndsAtItsDeadline: from that instant on it cannot commit.
func TestAnAttemptEndsAtItsDeadline(t *testing.T) {
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

// TestTheWatchdogEndsAConnection: at the deadline of its attempt, and not once the
// connection went back to the pool.
func TestTheWatchdogEndsAConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, closed := range []bool{false, true} {
			ours, servers := net.Pipe()
			a := &attempt{session: &session{socket: ours}, deadline: time.Now().Add(time.Second)}
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
		stopped := &attempt{session: &session{}, deadline: time.Now().Add(time.Second)}
		stopped.start()
		stopped.stopWatchdog()
		time.Sleep(time.Hour) //nolint:forbidigo // in a bubble
		if stopped.expired.Load() {
			t.Error("a watchdog that was stopped ended the attempt")
		}
	})
}
