package repriseredis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
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
				if _, _, err := s.Watch(t.Context(), store.ID{byte(i), byte(i >> 8)}); !errors.Is(err, store.ErrUnavailable) {
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
	if _, _, err := s.Watch(t.Context(), store.ID{}); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("watch: %v, want ErrUnavailable", err)
	}
	var first *listener
	for _, l := range s.watches.listeners {
		first = l
		l.mu.Lock()
		l.silentAt = time.Now().Add(-silence)
		l.mu.Unlock()
	}
	_, stop, err := s.Watch(t.Context(), store.ID{})
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
	if _, stop, err := s.Watch(t.Context(), store.ID{}); err != nil {
		t.Errorf("watch after a late confirmation: %v", err)
	} else {
		stop()
	}
}

// The subscriptions follow the watches, one command for each change.
func TestSubscriptionsFollowTheWatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		watchers        int
		sent, confirmed bool
		on, off, left   bool
	}{
		{"a new watch", 1, false, false, true, false, true},
		{"a watch on its way", 1, true, false, false, false, true},
		{"a watch", 1, true, true, false, false, true},
		{"left before it was sent", 0, false, false, false, false, false},
		{"left on its way", 0, true, false, false, false, true}, // see changes
		{"left", 0, true, true, false, true, false},
	} {
		ch := &channel{watchers: map[chan struct{}]struct{}{}, sent: c.sent, confirmed: c.confirmed}
		for range c.watchers {
			ch.watchers[make(chan struct{})] = struct{}{}
		}
		l := &listener{channels: map[string]*channel{"a": ch}, dirty: map[string]struct{}{"a": {}, "gone": {}}}
		on, off := l.changes()
		if len(on) > 0 != c.on || len(off) > 0 != c.off || (l.channels["a"] != nil) != c.left || len(l.dirty) > 0 {
			t.Errorf("%s: subscribes to %q, unsubscribes from %q, has %v, dirty %v", c.name, on, off, l.channels, l.dirty)
		}
		if c.on != (ch.sent && !c.sent) {
			t.Errorf("%s: sent %v", c.name, ch.sent)
		}
	}
}

// A watch is one subscription, whose messages wake its watchers, and its end is one more
// command: without a channel it would end the watches of others.
func TestAWatchIsOneSubscription(t *testing.T) {
	t.Parallel()
	channel := DefaultPrefix + strings.Repeat("\x00", 32)
	f := newFake(t, func(_, _ int, command []string) string {
		name := strings.ToLower(command[0])
		out := "*3\r\n" + bulk(name) + bulk(channel) + ":1\r\n"
		if name == "ssubscribe" {
			out += "*3\r\n" + bulk("smessage") + bulk("another") + bulk("") + "*3\r\n" + bulk("smessage") + bulk(channel) + bulk("")
		}
		return out
	})
	s := newStore(t, f, Config{})
	t.Cleanup(func() { _ = s.Close() })
	changed, stop, err := s.Watch(t.Context(), store.ID{})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Error("the watcher is not woken")
	}
	again, stopAgain, err := s.Watch(t.Context(), store.ID{})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if want := "1 ssubscribe " + channel; f.seen() != want {
		t.Errorf("sent %q, want %q", f.seen(), want)
	}
	stopAgain()
	want := "1 ssubscribe " + channel + ", 1 sunsubscribe " + channel
	eventually(t, "the watch is unsubscribed", func() bool { return f.seen() == want })
	_ = s.Close()
	if len(again) > 0 {
		t.Error("a watch that has ended is woken")
	}
}

// A watch waits for its subscription no longer than its caller and its store.
func TestAWatchEndsBeforeItBegan(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := denying(t, func(int) string { return mute }).Watch(ended, store.ID{}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("watch of one that left: %v, want ErrUnavailable", err)
	}
	s := denying(t, func(int) string { return mute })
	l, err := s.watches.listener(s.client.(*redis.Client)) //nolint:forcetypeassert // it is one
	if err != nil {
		t.Fatal(err)
	}
	l.close()
	if _, _, err := l.watch(t.Context(), "a"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("watch after the end: %v, want ErrClosed", err)
	}
}
