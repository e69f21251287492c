package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	reprise "github.com/reprise-go/reprise/core"
)

// road is a combiner with one lane, which is busy until the test lets it go on, and what it sent.
type road struct {
	*combiner
	free chan struct{}
	sent [][]string // the keys of each sending
	ctxs []context.Context
}

func newRoad() *road {
	r := &road{free: make(chan struct{})}
	r.combiner = &combiner{lanes: 1, transmit: func(ctx context.Context, batch []*command) {
		var keys []string
		for _, c := range batch {
			keys = append(keys, c.key)
			c.SetVal("+" + c.key)
		}
		r.sent, r.ctxs = append(r.sent, keys), append(r.ctxs, ctx)
		<-r.free
	}}
	return r
}

// drive sends a command in a goroutine of its own, and returns it and a channel that is closed when the call returns.
func (r *road) drive(ctx context.Context, key string) (*command, chan struct{}) {
	c := &command{script: claimScript, key: key, StringCmd: redis.NewStringCmd(ctx)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		r.send(ctx, []*command{c})
	}()
	synctest.Wait()
	return c, done
}

func returned(done chan struct{}) bool {
	synctest.Wait()
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestWhatComesMeanwhileGoesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		_, first := r.drive(t.Context(), "a")
		var others []chan struct{}
		for _, key := range []string{"b", "c", "d"} {
			_, done := r.drive(t.Context(), key)
			others = append(others, done)
		}
		r.free <- struct{}{}
		if !returned(first) {
			t.Error("the first waits for those that came after it")
		}
		for _, done := range others {
			if returned(done) {
				t.Error("returned before it was answered")
			}
		}
		_, last := r.drive(t.Context(), "e")
		r.free <- struct{}{}
		for _, done := range others {
			if !returned(done) {
				t.Error("does not return after it was answered")
			}
		}
		r.free <- struct{}{}
		if got := fmt.Sprint(r.sent); !returned(last) || got != "[[a] [b c d] [e]]" {
			t.Errorf("sent %v, want [[a] [b c d] [e]]", got)
		}
		if r.busy != 0 || len(r.waiting) != 0 {
			t.Errorf("%d lanes busy and %d commands waiting at the end", r.busy, len(r.waiting))
		}
	})
}

func TestNoPipelineIsLongerThanItsLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.drive(t.Context(), "first")
		const n = 2*mostCombined + 5
		for range n {
			r.drive(t.Context(), "k")
		}
		for range 4 {
			r.free <- struct{}{}
			synctest.Wait()
		}
		for i, want := range []int{1, mostCombined, mostCombined, 5} {
			if len(r.sent[i]) != want {
				t.Errorf("sending %d has %d commands, want %d", i, len(r.sent[i]), want)
			}
		}
	})
}

// What was not sent is known not to have been executed.
func TestACommandThatWaitsIsTakenBackUnsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.drive(t.Context(), "first")
		ctx, cancel := context.WithCancel(t.Context())
		gone, done := r.drive(ctx, "gone")
		stays, answered := r.drive(t.Context(), "stays")
		cancel()
		if !returned(done) {
			t.Fatal("waits on after its context ended")
		}
		if v := judge(gone.Err()); !errors.Is(v.class, reprise.ErrUnavailable) {
			t.Errorf("%v is %v, want ErrUnavailable", gone.Err(), v.class)
		}
		r.free <- struct{}{}
		synctest.Wait()
		r.free <- struct{}{}
		if got := fmt.Sprint(r.sent); !returned(answered) || stays.Err() != nil || got != "[[first] [stays]]" {
			t.Errorf("sent %v; the other: %v", got, stays.Err())
		}
	})
}

// A command whose context ended after it was taken into a batch is left out of it, also where it leads.
func TestABatchLeavesOutWhatHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.lanes = 0
		ended, cancel := context.WithCancel(t.Context())
		leader, _ := r.drive(ended, "leader")
		_, other := r.drive(t.Context(), "other")
		r.mu.Lock()
		batch := r.waiting
		r.waiting = nil
		r.mu.Unlock()
		cancel()
		synctest.Wait() // the leader has looked for itself among those that wait
		leader.led = batch
		leader.turn <- struct{}{}
		synctest.Wait()
		close(r.free)
		if got := fmt.Sprint(r.sent); !returned(other) || got != "[[other]]" {
			t.Errorf("sent %v, want [[other]]", got)
		}
		if v := judge(leader.Err()); !errors.Is(v.class, reprise.ErrUnavailable) {
			t.Errorf("the leader: %v", leader.Err())
		}
	})
}

func TestABatchHasItsShortestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.drive(t.Context(), "first")
		want := time.Now().Add(time.Second)
		for _, after := range []time.Duration{0, 3 * time.Second, time.Second, 2 * time.Second} {
			ctx := t.Context()
			if after > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, after)
				t.Cleanup(cancel)
			}
			r.drive(ctx, "k")
		}
		r.free <- struct{}{}
		synctest.Wait()
		close(r.free)
		if got, _ := r.ctxs[1].Deadline(); !got.Equal(want) {
			t.Errorf("the batch has until %v, want %v", got, want)
		}
	})
}

func TestAnImpatientCommandGoesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.drive(t.Context(), "first")
		ctx, cancel := context.WithTimeout(t.Context(), leastPatience/2)
		defer cancel()
		r.drive(ctx, "quick")
		if got := fmt.Sprint(r.sent); got != "[[first] [quick]]" {
			t.Errorf("sent %v, want both at once", got)
		}
		close(r.free)
	})
}

// A hook of the client that panics must neither keep the lane nor those that travel with it.
func TestAPanicKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		transmit, panics := r.transmit, func(context.Context, []*command) { panic("hook") }
		r.transmit = panics
		if _, alone := r.drive(t.Context(), "alone"); !returned(alone) || r.busy != 0 {
			t.Fatal("the lane is lost with the one that took it")
		}
		r.transmit = transmit
		r.drive(t.Context(), "first")
		_, leader := r.drive(t.Context(), "leader")
		follower, done := r.drive(t.Context(), "follower")
		r.transmit = panics
		r.free <- struct{}{}
		if !returned(leader) || !returned(done) {
			t.Fatal("somebody waits for ever")
		}
		if err := follower.refusal(); !errors.Is(err, reprise.ErrUnknown) {
			t.Errorf("the follower: %v, want ErrUnknown", err)
		}
		r.transmit = transmit
		close(r.free)
		if _, done := r.drive(t.Context(), "next"); !returned(done) {
			t.Error("the lane is lost")
		}
	})
}

func TestWhatIsNotCombined(t *testing.T) {
	t.Parallel()
	b := newCombiner(nil)
	for _, c := range []struct {
		name string
		b    *combiner
		c    *command
		want bool
	}{
		{"a claim", b, &command{script: claimScript}, true},
		{"a small payload", b, &command{script: completeScript, payload: make([]byte, largestCombined)}, true},
		{"a large payload", b, &command{script: completeScript, payload: make([]byte, largestCombined+1)}, false},
		{"a renewal", b, &command{script: renewScript}, false},
		{"no combiner", nil, &command{script: claimScript}, false},
	} {
		if got := c.b.takes(c.c); got != c.want {
			t.Errorf("%s: combined %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWhichStoresCombine(t *testing.T) {
	t.Parallel()
	single := redis.NewClient(&redis.Options{})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { _, _ = single.Close(), cluster.Close() })
	for _, c := range []struct {
		name   string
		client redis.UniversalClient
		config Config
		want   bool
	}{
		{"a single server", single, Config{}, true},
		{"switched off", single, Config{NoCombining: true}, false},
		{"a cluster", cluster, Config{}, false},
	} {
		s, err := New(c.client, c.config)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.combiner.takes(&command{script: claimScript}); got != c.want {
			t.Errorf("%s: combines %v, want %v", c.name, got, c.want)
		}
	}
}

// A wait for replicas concerns those of a pipeline that asked for it.
func TestOnePipelineConfirmsWhatHasToBe(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, call int, command []string) string {
		switch {
		case command[0] == "wait":
			return ":0\r\n"
		case call == 1:
			return bulk("R")
		default:
			return claimed
		}
	})
	s := newStore(t, f, Config{Durability: Acked(1)})
	release, granted := &command{script: releaseScript}, &command{script: claimScript, wait: true}
	for _, c := range []*command{release, granted} {
		s.prepare(t.Context(), c, reprise.ID{}, nil)
	}
	s.transmit(t.Context(), []*command{release, granted})
	if err := release.refusal(); err != nil {
		t.Errorf("the release: %v", err)
	}
	if err := granted.refusal(); !errors.Is(err, reprise.ErrNotReplicated) {
		t.Errorf("the claim: %v, want ErrNotReplicated", err)
	}
	if f.seen() != "1 evalsha, 1 evalsha, 1 wait 1 1000" {
		t.Errorf("sent %q", f.seen())
	}
}
