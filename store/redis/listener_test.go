package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

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
			var mu sync.Mutex
			subscribed := map[string]bool{}
			client, s := listening(t, newFake(t, func(_, _ int, command []string) string {
				mu.Lock()
				defer mu.Unlock()
				for _, channel := range command[1:] {
					subscribed[channel] = true
				}
				return answer
			}))
			start := time.Now()
			for i := range 1000 {
				if _, _, err := s.watch(t.Context(), client, strconv.Itoa(i)); !errors.Is(err, store.ErrUnavailable) {
					t.Fatalf("watch %d: %v, want ErrUnavailable", i, err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if n, most := len(subscribed), 1+int(time.Since(start)/silence); n > most {
				t.Errorf("%d of 1000 watches subscribed, and waited; want at most %d", n, most)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, l := range s.byServer {
				if n := len(l.channels); n > 1 {
					t.Errorf("%d channels are left", n)
				}
			}
		})
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
		l := &listener{mu: new(sync.Mutex), channels: map[string]*channel{"a": ch}, dirty: map[string]struct{}{"a": {}, "gone": {}}}
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
// command: without a channel it would end the watches of others. The end of the store
// wakes those that are left.
func TestAWatchIsOneSubscription(t *testing.T) {
	t.Parallel()
	const channel = "a"
	var mu sync.Mutex
	var log []string
	seen := func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(log, ", ")
	}
	client, s := listening(t, newFake(t, func(_, _ int, command []string) string {
		name := strings.ToLower(command[0])
		mu.Lock()
		defer mu.Unlock()
		log = append(log, strings.ToLower(strings.Join(command, " ")))
		out := "*3\r\n" + bulk(name) + bulk(channel) + ":1\r\n"
		if name == "ssubscribe" {
			out += "*3\r\n" + bulk("smessage") + bulk("another") + bulk("") + "*3\r\n" + bulk("smessage") + bulk(channel) + bulk("")
		}
		return out
	}))
	changed, stop, err := s.watch(t.Context(), client, "a")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	case <-time.After(time.Minute):
		t.Error("the watcher is not woken")
	}
	again, stopAgain, err := s.watch(t.Context(), client, "a")
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if want := "ssubscribe " + channel; seen() != want {
		t.Errorf("sent %q, want %q", seen(), want)
	}
	stopAgain()
	want := "ssubscribe " + channel + ", sunsubscribe " + channel
	eventually(t, "sent "+want, func() bool { return seen() == want })
	last, _, err := s.watch(t.Context(), client, "a")
	if err != nil {
		t.Fatal(err)
	}
	<-last
	l := s.byServer[client]
	listens := func() bool {
		stacks := make([]byte, 1<<20)
		return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), fmt.Sprintf("(*listener).receive(%p", l))
	}
	if !listens() {
		t.Fatal("no goroutine of the listener is there, so the test shows nothing")
	}
	s.close()
	if listens() {
		t.Error("a goroutine of the listener is left")
	}
	if len(again) > 0 || len(last) != 1 {
		t.Errorf("closed: a watch that has ended is woken %d times, and one that runs %d times, want once", len(again), len(last))
	}
}

// A watch waits for its subscription no longer than its caller and its store.
func TestAWatchEndsBeforeItBegan(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	client, s := denying(t, func(int) string { return mute })
	if _, _, err := s.watch(ended, client, "a"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("watch of one that left: %v, want ErrUnavailable", err)
	}
	l := s.byServer[client]
	l.close()
	if err := l.await(t.Context(), &channel{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("watch after the end: %v, want ErrClosed", err)
	}
}

// When the silence is over, or a confirmation came late, watches work again.
func TestAWatchIsTriedAgain(t *testing.T) {
	t.Parallel()
	confirmation := func() string {
		return "*3\r\n" + bulk("ssubscribe") + bulk("a") + ":1\r\n"
	}
	client, s := denying(t, func(call int) string {
		if call == 1 {
			return "-NOPERM No permissions to access a channel\r\n"
		}
		return confirmation()
	})
	if _, _, err := s.watch(t.Context(), client, "a"); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("watch: %v, want ErrUnavailable", err)
	}
	first := s.byServer[client]
	s.mu.Lock()
	first.silentAt = time.Now().Add(-silence)
	s.mu.Unlock()
	_, stop, err := s.watch(t.Context(), client, "a")
	if err != nil {
		t.Fatalf("watch after the silence: %v", err)
	}
	defer stop()
	if first.ctx.Err() == nil {
		t.Error("the listener that was not confirmed is still there")
	}
	s.mu.Lock()
	s.byServer[client].silentAt = time.Now()
	s.byServer[client].confirm("any")
	s.mu.Unlock()
	if _, stop, err := s.watch(t.Context(), client, "a"); err != nil {
		t.Errorf("watch after a late confirmation: %v", err)
	} else {
		stop()
	}
}
