package repriseredis

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// nodeFor returns the node of a store over one server.
func nodeFor(t *testing.T, s *Store) *node {
	t.Helper()
	return s.nodeOf(t.Context(), &command{})
}

// newBatching returns a store over f whose client has one connection, so that all calls
// share a lane.
func newBatching(t *testing.T, f *fake, c Config) *Store {
	t.Helper()
	return over(t, newClient(t, f, func(o *redis.Options) { o.PoolSize = 1 }), c)
}

// pipelines is a hook of a client that notes how many calls each pipeline has.
type pipelines struct {
	before, after func(ctx context.Context, calls int) // may be nil
	reads         bool                                 // the arguments, as instrumentation does
	mu            sync.Mutex
	calls         []int
}

func (*pipelines) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*pipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p *pipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		calls := 0
		for _, c := range commands {
			if name := c.Name(); name == "set" || name == "evalsha" {
				calls++
			}
			if p.reads {
				_ = c.Args()
			}
		}
		p.mu.Lock()
		p.calls = append(p.calls, calls)
		p.mu.Unlock()
		if p.before != nil {
			p.before(ctx, calls)
		}
		err := next(ctx, commands)
		if p.after != nil {
			p.after(ctx, calls)
		}
		return err
	}
}

// The fifth call on its way to a server starts batches, which keep the calls until 64 in
// a row were few. Half of a small pool is fewer.
func TestFewCallsAreSentAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pool, few int }{{100, 4}, {8, 4}, {7, 3}, {4, 2}, {2, 1}, {1, 0}} {
		s := &Store{}
		client := redis.NewClient(&redis.Options{PoolSize: c.pool})
		t.Cleanup(func() { _ = client.Close() })
		n := s.newNode(client)
		for depth := range c.few {
			if !n.begin() {
				t.Errorf("a pool of %d: call %d is not one of few", c.pool, depth+1)
			}
		}
		if n.begin() {
			t.Errorf("a pool of %d: %d calls are few", c.pool, c.few+1)
		}
		for range c.few + 1 {
			n.active.Add(-1)
		}
		if c.few == 0 {
			continue
		}
		for i := range staysBusy + 2 {
			if got := n.begin(); got != (i >= staysBusy) {
				t.Errorf("a pool of %d: call %d after the busy time is one of few: %v", c.pool, i+1, got)
			}
			n.active.Add(-1)
		}
	}
}

// Only calls whose payloads and replies are bounded share a batch.
func TestCallsInABatchAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		c    *command
		want bool
	}{
		{"a native claim", &command{script: record.ClaimScript, claim: &nativeClaim{}}, true},
		{"the script of a claim", &command{script: record.ClaimScript}, false},
		{"a release", &command{script: record.ReleaseScript}, true},
		{"a small completion", &command{script: record.CompleteScript, payload: make(blob, maxPayload)}, true},
		{"a large completion", &command{script: record.CompleteScript, payload: make(blob, maxPayload+1)}, false},
		{"a large resolution", &command{script: record.ResolveScript, payload: make(blob, maxPayload+1)}, false},
		{"an inspection", &command{script: record.InspectScript}, false},
	} {
		if got := c.c.isBounded(); got != c.want {
			t.Errorf("%s: bounded %v, want %v", c.name, got, c.want)
		}
	}
}

// The claims of a batch read at most 64 KiB each and 1 MiB together, and where records
// are long, batches have few claims.
func TestTheRepliesToABatchAreBounded(t *testing.T) {
	t.Parallel()
	const size = 100 << 10
	long := bulk(string(replayable(strings.Repeat("x", size))))
	f := newFake(t, func(_, _ int, _ []string) string { return long })
	n := nodeFor(t, newBatching(t, f, Config{}))
	for _, calls := range []int{2, 16, 17, batching.DefaultMaxCalls} {
		batch := make([]*command, calls)
		for i := range batch {
			batch[i] = &nativeOf(t).command
		}
		n.send(t.Context(), batch...)
		sum := 0
		for _, c := range batch {
			read := len(c.record())
			if sum += read; read == 0 || read > maxFound {
				t.Fatalf("a claim beside %d others read %d bytes", calls-1, read)
			}
			if c.decide() {
				t.Error("a record that was read in part is decided")
			}
		}
		if sum > maxReplies {
			t.Errorf("%d claims read %d bytes", calls, sum)
		}
		n.noteFound(batch)
	}
	one := nativeOf(t)
	if n.send(t.Context(), &one.command); !one.decide() || one.result.Outcome != store.Completed || len(one.result.Payload) != size {
		t.Errorf("a claim alone: %v, a payload of %d bytes", one.result.Outcome, len(one.result.Payload))
	}
	before := n.size(&one.command)
	for range 50 {
		n.noteFound([]*command{&one.command})
	}
	if after := n.size(&one.command); before > maxFound || after < size*9/10 || after > size*11/10 {
		t.Errorf("a claim adds %d bytes to a batch, %d after long replays", before, after)
	}
}

// Calls that arrive while a lane is busy share the next batch, except where every call is
// sent alone.
func TestCallsThatWaitShareABatch(t *testing.T) {
	t.Parallel()
	for _, config := range []Config{{}, {Durability: Acked(1)}, {NoCombining: true}, {NoCombining: true, Durability: Acked(1)}} {
		asked, free := make(chan struct{}, 1), make(chan struct{})
		var first atomic.Bool
		f := newFake(t, func(_, _ int, command []string) string {
			if command[0] == "wait" {
				return ":1\r\n"
			}
			if first.CompareAndSwap(false, true) {
				asked <- struct{}{}
				<-free
			}
			return bulk("D")
		})
		s := newBatching(t, f, config)
		sent := new(pipelines)
		s.client.AddHook(sent)
		complete := func() {
			err := s.Complete(t.Context(), store.CompleteRequest{Owner: store.Owner{1}, Policy: store.Policy{Retention: time.Hour}})
			if err != nil {
				t.Errorf("%+v: complete: %v", config, err)
			}
		}
		var calling sync.WaitGroup
		calling.Go(complete)
		<-asked
		n := nodeFor(t, s)
		queue := n.calls
		if config.Durability.level != async {
			queue = n.confirmed
		}
		for range 8 {
			calling.Go(complete)
		}
		if queue != nil {
			eventually(t, "the others wait", func() bool { return queue.Waiting() == 8 })
		}
		close(free)
		calling.Wait()
		most := 0
		for _, n := range sent.calls {
			most = max(most, n)
		}
		if want := map[bool]int{false: 8}[config.NoCombining]; want == 8 && most != 8 || want == 0 && most > 1 {
			t.Errorf("%+v: the pipelines have %v calls", config, sent.calls)
		}
	}
}

// A caller may leave, and use the memory of its payload again, before its call is
// written with those of others: it is withdrawn then, and busy, also where the batch
// waits for the connection of another call. After a hook has read the arguments, its
// caller does not know that.
func TestACallThatIsLeftIsTheSenders(t *testing.T) {
	t.Parallel()
	testLeft(t, &pipelines{}, false, store.ErrBusy)
	testLeft(t, &pipelines{}, true, store.ErrBusy)
	testLeft(t, &pipelines{reads: true}, false, store.ErrUnknown)
}

func testLeft(t *testing.T, hook *pipelines, exhausted bool, left error) {
	t.Helper()
	asked, free := make(chan struct{}, 9), make(chan struct{})
	answer := sync.OnceFunc(func() { close(free) })
	defer answer()
	f := newFake(t, func(_, _ int, command []string) string {
		asked <- struct{}{}
		<-free
		if payload := command[len(command)-1]; payload != "payload" {
			t.Errorf("sent the payload %q", payload)
		}
		return bulk("D")
	})
	// Where the client ignores the deadlines of contexts, a sender sends for its callers.
	client := newClient(t, f, func(o *redis.Options) {
		o.PoolSize, o.ReadTimeout, o.ContextTimeoutEnabled = 1, time.Hour, false
	})
	taken, write := make(chan struct{}), make(chan struct{})
	hook.before = func(ctx context.Context, _ int) {
		if exhausted {
			held := client.Conn()
			defer func() { _ = held.Close() }()
			if err := held.Ping(ctx).Err(); err != nil {
				t.Errorf("hold the connection: %v", err)
			}
		}
		close(taken)
		<-write
	}
	client.AddHook(hook)
	s := over(t, client, Config{})
	queue := nodeFor(t, s).calls
	ctx, cancel := context.WithCancel(t.Context())
	complete := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() {
			payload := []byte("payload")
			err := s.Complete(ctx, store.CompleteRequest{Owner: store.Owner{1}, Payload: payload, Policy: store.Policy{Retention: time.Hour}})
			copy(payload, "another")
			done <- err
		}()
		return done
	}
	alone, leave := context.WithCancel(t.Context())
	first := complete(alone)
	<-asked
	leave()
	select {
	case err := <-first:
		if !errors.Is(err, store.ErrUnknown) {
			t.Errorf("left alone: %v, want ErrUnknown", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a caller waits for the reply after its context has ended")
	}
	leaves, stays := complete(ctx), complete(t.Context())
	eventually(t, "both wait", func() bool { return queue.Waiting() == 2 })
	answer()
	<-taken
	withdrawn := complete(ctx)
	eventually(t, "another waits", func() bool { return queue.Waiting() == 1 })
	cancel()
	if err := <-leaves; !errors.Is(err, left) {
		t.Errorf("left its batch before it was written: %v, want %v", err, left)
	}
	if err := <-withdrawn; !errors.Is(err, store.ErrBusy) {
		t.Errorf("left the queue: %v, want ErrBusy", err)
	}
	close(write)
	if err := <-stays; err != nil {
		t.Error(err)
	}
	if f.sent() != "evalsha, evalsha" {
		t.Errorf("sent %q, want no call that its caller left before", f.sent())
	}
}

// A server that hangs holds a lane no longer than a batch may take, also where the client
// has no ReadTimeout and its callers no deadlines.
func TestABatchHoldsItsLaneNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return claimed })
	client := newClient(t, f, func(o *redis.Options) { o.PoolSize, o.ReadTimeout = 1, -1 })
	var deadline time.Time
	client.AddHook(&pipelines{before: func(ctx context.Context, _ int) { deadline, _ = ctx.Deadline() }})
	r := store.ClaimRequest{Owner: store.Owner{1}, Lease: time.Second, Policy: store.Policy{Retention: time.Hour}}
	_, _ = over(t, client, Config{}).Claim(t.Context(), r)
	if deadline.IsZero() || time.Until(deadline) > answerWithin {
		t.Errorf("a batch may be sent until %v, want %v at most", deadline, answerWithin)
	}
}
