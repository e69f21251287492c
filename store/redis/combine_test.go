package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	reprise "github.com/reprise-go/reprise/core"
)

// road is a combiner with one lane, which is busy until the test lets it go on, and what
// it sent.
type road struct {
	*combiner
	free chan struct{}
	log  sync.Mutex
	sent [][]string // the keys of each attempt
	ctxs []context.Context
}

func newRoad() *road {
	r := &road{free: make(chan struct{})}
	r.combiner = &combiner{lanes: 1, transmit: func(ctx context.Context, batch []*command) (confirm func()) {
		var keys []string
		for _, c := range batch {
			keys = append(keys, c.key)
			c.SetVal("+" + c.key)
		}
		r.log.Lock()
		r.sent, r.ctxs = append(r.sent, keys), append(r.ctxs, ctx)
		r.log.Unlock()
		<-r.free
		return nil
	}}
	return r
}

// drive sends a command in a goroutine of its own, and returns it and a channel that is
// closed when the call returns.
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
		if r.busy != 0 || len(r.queue) != 0 {
			t.Errorf("%d lanes busy and %d commands waiting at the end", r.busy, len(r.queue))
		}
	})
}

// A lane is occupied for a round trip, so on a slow network fewer lanes than callers
// would make callers wait for each other: sixteen never do.
func TestSixteenCallersDoNotQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.lanes = newCombiner(nil).lanes
		for range 16 {
			r.drive(t.Context(), "k")
		}
		if len(r.sent) != 16 || len(r.queue) != 0 {
			t.Errorf("%d commands are on their way and %d queue, want 16 and none", len(r.sent), len(r.queue))
		}
		r.drive(t.Context(), "k")
		if len(r.sent) != 16 || len(r.queue) != 1 {
			t.Errorf("%d commands are on their way and %d queue, want 16 and one", len(r.sent), len(r.queue))
		}
		close(r.free)
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
				t.Errorf("batch %d has %d commands, want %d", i, len(r.sent[i]), want)
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
		if v := classify(gone.Err()); !errors.Is(v.class, reprise.ErrUnavailable) {
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

// A command whose context ended after it was taken into a batch is left out of it, also
// where it leads.
func TestABatchLeavesOutWhatHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.lanes = 0
		ended, cancel := context.WithCancel(t.Context())
		leader, _ := r.drive(ended, "leader")
		_, other := r.drive(t.Context(), "other")
		batch := r.queue
		r.queue = nil
		cancel()
		synctest.Wait() // the leader has looked for itself among those that wait
		leader.batch = batch
		leader.wake <- struct{}{}
		synctest.Wait()
		close(r.free)
		if got := fmt.Sprint(r.sent); !returned(other) || got != "[[other]]" {
			t.Errorf("sent %v, want [[other]]", got)
		}
		if v := classify(leader.Err()); !errors.Is(v.class, reprise.ErrUnavailable) {
			t.Errorf("the leader: %v", leader.Err())
		}
	})
}

func TestABatchHasItsEarliestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.drive(t.Context(), "first")
		want := time.Now().Add(time.Second)
		for _, after := range []time.Duration{0, 3 * time.Second, time.Second, 2 * time.Second} {
			r.drive(within(t, after), "k")
		}
		r.free <- struct{}{}
		synctest.Wait()
		close(r.free)
		if got, _ := r.ctxs[1].Deadline(); !got.Equal(want) {
			t.Errorf("the batch has until %v, want %v", got, want)
		}
	})
}

// within returns a context that ends after d, or one without an end for zero.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	if d == 0 {
		return t.Context()
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Time passes while commands queue: one that has too little left when its batch is sent
// neither shortens the batch nor delays it, whether it is the oldest or not.
func TestANearlyExpiredCommandLeavesItsBatch(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoad()
			r.drive(t.Context(), "first")
			for i := range 4 {
				if i == at {
					r.drive(within(t, 2*leastPatience), "late")
				} else {
					r.drive(within(t, time.Hour), "k")
				}
			}
			time.Sleep(3 * leastPatience / 2) //nolint:forbidigo // the clock of the bubble
			r.free <- struct{}{}
			synctest.Wait()
			close(r.free)
			synctest.Wait()
			sizes := map[int]int{}
			for i, keys := range r.sent[1:] {
				sizes[len(keys)]++
				if left := time.Until(must(r.ctxs[i+1].Deadline())); len(keys) == 3 && left < time.Minute {
					t.Errorf("the batch has %v", left)
				}
			}
			if sizes[1] != 1 || sizes[3] != 1 || len(r.sent) != 3 || r.busy != 0 {
				t.Errorf("sent %v, %d lanes busy; want the late one alone and the others together", r.sent, r.busy)
			}
		})
	}
}

func must(t time.Time, _ bool) time.Time { return t }

func TestABatchIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		payloads []int
		want     int
	}{
		{"without payloads", make([]int, 10), 10},
		{"to the limit", []int{largestCombined, largestCombined, largestCombined, largestCombined}, 4},
		{"over the limit", []int{largestCombined, largestCombined, largestCombined, largestCombined, 1}, 4},
		{"at least one", []int{mostBytes + 1, 1}, 1},
	} {
		var queue []*command
		for _, n := range c.payloads {
			queue = append(queue, &command{payload: make([]byte, n)})
		}
		if got := batchSize(queue); got != c.want {
			t.Errorf("%s: %d commands, want %d", c.name, got, c.want)
		}
	}
}

// The confirmation of a batch occupies no lane, and holds up only those that wrote.
func TestOnlyWritesWaitForTheirConfirmation(t *testing.T) {
	t.Parallel()
	for _, writes := range []string{"a c", "b", "d", "a b c d", ""} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoad()
			confirmed := make(chan struct{})
			transmit := r.transmit
			r.transmit = func(ctx context.Context, batch []*command) func() {
				transmit(ctx, batch)
				var open []*command
				for _, c := range batch {
					if strings.Contains(writes, c.key) {
						c.unconfirmed = true
						open = append(open, c)
					}
				}
				if len(open) == 0 {
					return nil
				}
				return func() {
					<-confirmed
					for _, c := range open {
						c.confirmed(nil)
					}
				}
			}
			r.drive(t.Context(), "first")
			calls := map[string]chan struct{}{}
			for _, key := range []string{"a", "b", "c", "d"} {
				_, calls[key] = r.drive(t.Context(), key)
			}
			r.free <- struct{}{}
			r.free <- struct{}{}
			for key, done := range calls {
				if returned(done) == strings.Contains(writes, key) {
					t.Errorf("of %q, %s has returned: %v", writes, key, returned(done))
				}
			}
			if r.busy != 0 {
				t.Error("a lane is busy with the confirmation")
			}
			close(confirmed)
			for key, done := range calls {
				if !returned(done) {
					t.Errorf("of %q, %s never returns", writes, key)
				}
			}
		})
	}
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

// A hook of the client that panics must neither keep the lane nor those that travel with
// it.
func TestAPanicKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		transmit, panics := r.transmit, func(context.Context, []*command) (confirm func()) { panic("hook") }
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
		if got := c.b.combines(c.c); got != c.want {
			t.Errorf("%s: combined %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWhichStoresCombine(t *testing.T) {
	t.Parallel()
	client := func(o redis.Options) *redis.Client {
		c := redis.NewClient(&o)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	single := client(redis.Options{})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { _ = cluster.Close() })
	for _, c := range []struct {
		name                string
		client              redis.UniversalClient
		config              Config
		combines, pipelines bool
	}{
		{"a single server", single, Config{}, false, true},
		{"switched off", single, Config{NoCombining: true}, false, false},
		{"a cluster", cluster, Config{}, false, true},
		{"replicas confirm", single, Config{Durability: Acked(1)}, true, true},
		{"replicas of a cluster confirm", cluster, Config{Durability: Acked(1)}, false, true},
		{"a limiter has to see every command", client(redis.Options{Limiter: limiter{}}), Config{}, false, false},
		{"credentials change on connections that are in use", client(redis.Options{StreamingCredentialsProvider: streamed{}}), Config{}, false, false},
	} {
		s, err := New(c.client, c.config)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.combiner.combines(&command{script: claimScript}); got != c.combines || (s.pipelines != nil) != c.pipelines {
			t.Errorf("%s: combines %v, pipelines %v; want %v, %v", c.name, got, s.pipelines != nil, c.combines, c.pipelines)
		}
	}
}

type limiter struct{ redis.Limiter }

type streamed struct {
	auth.StreamingCredentialsProvider
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
		s.call(t.Context(), c, reprise.ID{})
	}
	s.transmit(t.Context(), []*command{release, granted})()
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
