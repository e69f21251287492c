package repriseredis

import (
	"errors"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// denying returns a store on a server that answers subscriptions as the test says.
func denying(t *testing.T, answer func(call int) string) *Store {
	t.Helper()
	calls := 0
	f := newFake(t, func(_, _ int, command []string) string {
		if strings.EqualFold(command[0], "ssubscribe") {
			calls++
			return answer(calls)
		}
		return ":0\r\n"
	})
	s := newStore(t, f, Config{})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A request that waits without a watch polls, so a subscription that never comes must not
// hold it.
func TestAWatchThatIsNotConfirmedIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"no permission": "-NOPERM No permissions to access a channel\r\n",
		"no command":    "-ERR unknown command 'ssubscribe'\r\n",
		"no answer":     mute,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := denying(t, func(int) string { return answer })
			start := time.Now()
			for i := range 1000 {
				if _, _, err := s.Watch(t.Context(), reprise.ID{byte(i), byte(i >> 8)}); !errors.Is(err, reprise.ErrUnavailable) {
					t.Fatalf("watch %d: %v, want ErrUnavailable", i, err)
				}
			}
			if d := time.Since(start); d > 50*confirmTimeout {
				t.Errorf("1000 watches took %v; only the first may wait for %v", d, confirmTimeout)
			}
			for _, l := range s.watches.listeners {
				l.mu.Lock()
				if n := len(l.channels); n > 1 {
					t.Errorf("%d channels are left", n)
				}
				l.mu.Unlock()
			}
		})
	}
}

// When the silence is over, or a confirmation came late, watches work again.
func TestAWatchIsTriedAgain(t *testing.T) {
	t.Parallel()
	confirmation := func() string {
		return "*3\r\n" + bulk("ssubscribe") + bulk(DefaultPrefix+strings.Repeat("\x00", 32)) + ":1\r\n"
	}
	s := denying(t, func(call int) string {
		if call == 1 {
			return "-NOPERM No permissions to access a channel\r\n"
		}
		return confirmation()
	})
	if _, _, err := s.Watch(t.Context(), reprise.ID{}); !errors.Is(err, reprise.ErrUnavailable) {
		t.Fatalf("watch: %v, want ErrUnavailable", err)
	}
	var first *listener
	for _, l := range s.watches.listeners {
		first = l
		l.mu.Lock()
		l.silentAt = time.Now().Add(-silence)
		l.mu.Unlock()
	}
	_, stop, err := s.Watch(t.Context(), reprise.ID{})
	if err != nil {
		t.Fatalf("watch after the silence: %v", err)
	}
	defer stop()
	if !first.isOver() {
		t.Error("the listener that was not confirmed is still there")
	}
	for _, l := range s.watches.listeners {
		l.missConfirmation()
		l.confirm("any")
	}
	if _, stop, err := s.Watch(t.Context(), reprise.ID{}); err != nil {
		t.Errorf("watch after a late confirmation: %v", err)
	} else {
		stop()
	}
}
