package repriseredis

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
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
		f := newFake(t, func(_, _ int, _ []string) string { return answer })
		client, s := listening(t, f)
		s.timeout = time.Millisecond
		start := time.Now()
		for i := range 1000 {
			if _, _, err := s.watch(t.Context(), client, strconv.Itoa(i)); !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("%s: watch %d: %v, want ErrUnavailable", name, i, err)
			}
		}
		if n, most := strings.Count(f.sent(), "ssubscribe"), 1+int(time.Since(start)/silence); n > most {
			t.Errorf("%s: %d of 1000 watches subscribed, and waited; want at most %d", name, n, most)
		}
		s.mu.Lock()
		if n := len(s.byServer[client].watchers); n > 1 {
			t.Errorf("%s: %d channels are left", name, n)
		}
		s.mu.Unlock()
	}
}

// A watch is one subscription, whose messages wake its watchers, and its end is one more
// command: without a channel it would end the watches of others. The end of the store
// wakes those that are left.
func TestAWatchIsOneSubscription(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, command []string) string {
		return "*3\r\n" + bulk(command[0]) + bulk(command[1]) + ":1\r\n"
	})
	client, s := listening(t, f)
	watch := func() (<-chan struct{}, func()) {
		changed, stop, err := s.watch(t.Context(), client, "a")
		if err != nil {
			t.Fatal(err)
		}
		return changed, stop
	}
	changed, stop := watch()
	again, stopAgain := watch()
	l := s.byServer[client]
	l.handle(&redis.Message{Channel: "another"})
	if len(changed) > 0 || len(again) > 0 {
		t.Error("a watcher is woken before there was a message")
	}
	for range 2 {
		l.handle(&redis.Message{Channel: "a"})
	}
	if len(changed) != 1 || len(again) != 1 {
		t.Error("a watcher is not woken once")
	}
	<-again
	stop()
	if f.sent() != "ssubscribe a" {
		t.Errorf("sent %q, want one subscription", f.sent())
	}
	stopAgain()
	eventually(t, "its end is sent", func() bool { return f.sent() == "ssubscribe a, sunsubscribe a" })
	s.mu.Lock() // the last watch of b ended and another began, before run saw either
	l.queue("b", false)
	l.queue("b", true)
	l.queue("c", true)
	l.queue("d", false)
	l.queue("e", false)
	s.mu.Unlock()
	eventually(t, "each channel is a command", func() bool {
		sent := strings.Split(f.sent(), ", ")[2:]
		slices.Sort(sent)
		return strings.Join(sent, ", ") == "ssubscribe b, ssubscribe c, sunsubscribe d, sunsubscribe e"
	})
	last, _ := watch()
	s.close() // waits for run, which wakes those that are left at its end
	if len(again) > 0 || len(last) != 1 {
		t.Errorf("closed: a watch that has ended is woken %d times, and one that runs %d times, want once", len(again), len(last))
	}
}

// A watch waits for its subscription no longer than its caller and its store. One that
// was left on its way is ended once it is confirmed: before, its confirmation could be
// taken for that of the next one.
func TestAWatchEndsBeforeItBegan(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	f := newFake(t, func(_, _ int, _ []string) string { return mute })
	client, s := listening(t, f)
	if _, _, err := s.watch(ended, client, "a"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("watch of one that left: %v, want ErrUnavailable", err)
	}
	eventually(t, "it is subscribed to", func() bool { return f.sent() == "ssubscribe a" })
	l := s.byServer[client]
	l.handle(&redis.Subscription{Kind: "sunsubscribe", Channel: "a"})
	if len(l.watchers) != 1 || l.silentAt.IsZero() {
		t.Error("it was ended on its way, or its confirmation is not missed")
	}
	l.handle(&redis.Subscription{Kind: "ssubscribe", Channel: "a"})
	eventually(t, "it is ended", func() bool { return f.sent() == "ssubscribe a, sunsubscribe a" })

	waits := make(chan error)
	go func() { _, _, err := s.watch(t.Context(), client, "b"); waits <- err }()
	eventually(t, "another is subscribed to", func() bool { return strings.HasSuffix(f.sent(), ", ssubscribe b") })
	s.close()
	if err := <-waits; !errors.Is(err, store.ErrClosed) {
		t.Errorf("watch at the end: %v, want ErrClosed", err)
	}
}

// When the silence is over, or a confirmation came late, watches work again.
func TestAWatchIsTriedAgain(t *testing.T) {
	t.Parallel()
	asked := false
	f := newFake(t, func(_, _ int, _ []string) string {
		if !asked {
			asked = true
			return "-NOPERM No permissions to access a channel\r\n"
		}
		return "*3\r\n" + bulk("ssubscribe") + bulk("a") + ":1\r\n"
	})
	client, s := listening(t, f)
	s.timeout = time.Millisecond
	if _, _, err := s.watch(t.Context(), client, "a"); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("watch: %v, want ErrUnavailable", err)
	}
	eventually(t, "it is refused", func() bool { return f.sent() == "ssubscribe a" })
	first := s.byServer[client]
	s.mu.Lock()
	first.silentAt = time.Now().Add(-time.Minute)
	s.mu.Unlock()
	s.timeout = time.Minute
	_, stop, err := s.watch(t.Context(), client, "a")
	if err != nil {
		t.Fatalf("watch after the silence: %v", err)
	}
	defer stop()
	eventually(t, "the listener that was not confirmed ends", func() bool { return first.ctx.Err() != nil })
	l := s.byServer[client]
	l.silentAt = time.Now()
	l.handle(&redis.Subscription{Kind: "ssubscribe", Channel: "a"})
	if !l.silentAt.IsZero() {
		t.Error("a late confirmation is missed")
	}
}

// Nor is a server that redirects to itself, such as one whose name has another address by
// now, asked on new connections all the time.
func TestAServerThatRedirectsToItselfIsAskedSeldom(t *testing.T) {
	t.Parallel()
	var f *fake
	f = newFake(t, func(_, _ int, command []string) string {
		if command[0] == "subscribe" {
			return "*3\r\n" + bulk(command[0]) + bulk(command[1]) + ":1\r\n"
		}
		return "-MOVED 1 " + f.Addr + "\r\n"
	})
	client, s := listening(t, f)
	s.cluster, s.timeout = true, 2*confirmTimeout
	_, _, _ = s.watch(t.Context(), client, "a") // until it is too late
	connections := func() int { return strings.Count(f.seen(), " subscribe") }
	before, start := connections(), time.Now()
	eventually(t, "ten more connections", func() bool { return connections() >= before+10 })
	if took := time.Since(start); took < firstPause<<(2*(repeats-1)) {
		t.Errorf("ten connections within %v", took)
	}
}
