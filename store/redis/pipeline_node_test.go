package repriseredis

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// The times of a pipeline follow the options of its client.
func TestTheLimitsOfAPipeline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		o    redis.Options
		want pipelineLimits
	}{
		{"the defaults", redis.Options{}, pipelineLimits{read: 3 * time.Second, write: 3 * time.Second, idle: pipelineIdle}},
		{"shorter ones", redis.Options{ReadTimeout: 1, WriteTimeout: 2, ConnMaxIdleTime: 4, ConnMaxLifetime: 5}, pipelineLimits{read: 1, write: 2, idle: 4, lifetime: 5}},
		{"longer ones", redis.Options{ReadTimeout: time.Hour, WriteTimeout: time.Hour, ConnMaxIdleTime: time.Hour}, pipelineLimits{read: time.Hour, write: time.Hour, idle: pipelineIdle}},
		{"none", redis.Options{ReadTimeout: -1, WriteTimeout: -1, ConnMaxIdleTime: -1}, pipelineLimits{read: answerWithin, write: answerWithin, idle: pipelineIdle}},
		{"none for writes", redis.Options{ReadTimeout: time.Second, WriteTimeout: -1}, pipelineLimits{read: time.Second, write: time.Second, idle: pipelineIdle}},
	} {
		client := redis.NewClient(&c.o)
		t.Cleanup(func() { _ = client.Close() })
		n := newPipelines(client, nil).single
		if n.limits != c.want || n.sentinel {
			t.Errorf("%s: %+v, behind sentinels %v; want %+v", c.name, n.limits, n.sentinel, c.want)
		}
	}
	behind := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { _ = behind.Close() })
	if !newPipelines(behind, nil).single.sentinel {
		t.Error("a client behind sentinels is taken for another")
	}
}

// A caller writes itself what the operating system takes at once.
func TestWhatACallerWritesItself(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		connected bool
		inFlight  int64
		size      int
		want      bool
	}{
		{"a small call", true, 0, largestInline, true},
		{"a larger one", true, 0, largestInline + 1, false},
		{"behind another", true, 1, 1, false},
		{"without a connection", false, 0, 1, false},
	} {
		n := &nodePipeline{}
		if c.connected {
			conn := &pipelineConn{}
			conn.inFlight.Store(c.inFlight)
			n.conn.Store(conn)
		}
		if got := n.sendsInline(&pipelineCall{out: make([]byte, c.size)}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// What a pipeline sends is bounded, and nothing of a call is left out.
func TestWhatAPipelineSends(t *testing.T) {
	t.Parallel()
	s := &Store{}
	for size, want := range map[int]bool{0: true, largestPipelined: true, largestPipelined + 1: false} {
		c := &command{script: record.CompleteScript, payload: make([]byte, size)}
		s.call(t.Context(), c, store.ID{}, &c.payload)
		if v := (&pipelineCall{}); v.encode(c) != want || want && (v.want != 1 || len(v.out) <= size) {
			t.Errorf("a payload of %d bytes: %d replies to %d bytes, want it sent: %v", size, v.want, len(v.out), want)
		}
	}
	for _, validity := range []bool{false, true} {
		n := &nativeClaim{request: store.ClaimRequest{Owner: store.Owner{1}, Lease: time.Second, Retention: time.Hour, Validity: validity}}
		n.prepare(t.Context())
		v, want := &pipelineCall{}, 2
		if validity {
			want = mostReplies
		}
		if !v.encode(&n.command) || v.want != want || strings.Count(string(v.out), "*") < want {
			t.Errorf("with the validity %v: %d replies to %q, want %d", validity, v.want, v.out, want)
		}
	}
}

// A server has one pipeline until it is forgotten, and none after the end of all.
func TestAServerHasOnePipeline(t *testing.T) {
	t.Parallel()
	node := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = node.Close() })
	p := &pipelines{}
	p.ctx, p.cancel = context.WithCancel(t.Context())
	first := p.of(node)
	if first == nil || p.of(node) != first {
		t.Error("a second pipeline")
	}
	p.forget(first)
	second := p.of(node)
	if second == first {
		t.Error("a forgotten pipeline is used")
	}
	if p.forget(first); p.of(node) != second {
		t.Error("a pipeline was forgotten in the place of another")
	}
	p.close()
	if p.of(node) != nil {
		t.Error("a pipeline after the end")
	}
}

// There is one dial at a time, none where there is a connection, and none right after one
// that failed.
func TestWhenAPipelineDials(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		prepare func(n *nodePipeline)
		want    bool
	}{
		{"at first", func(*nodePipeline) {}, true},
		{"one dials", func(n *nodePipeline) { n.dialing = true }, false},
		{"there is a connection", func(n *nodePipeline) { n.conn.Store(&pipelineConn{Conn: &recorder{}}) }, false},
		{"one failed just now", func(n *nodePipeline) { n.redial = time.Now().Add(time.Hour) }, false},
		{"one failed some time ago", func(n *nodePipeline) { n.redial = time.Now() }, true},
	} {
		var dials atomic.Int64
		client := redis.NewClient(&redis.Options{DialTimeout: time.Second, ReadTimeout: time.Second, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) < time.Second {
				t.Errorf("%s: a dial until %v, want the time of a dial and of a reply", c.name, deadline)
			}
			dials.Add(1)
			return nil, errors.New("nobody is there")
		}})
		t.Cleanup(func() { _ = client.Close() })
		p := newPipelines(client, nil)
		c.prepare(p.single)
		p.single.connect()
		p.working.Wait()
		if got := dials.Load(); got > 0 != c.want { // go-redis may try again
			t.Errorf("%s: %d dials, want some: %v", c.name, got, c.want)
		}
		if pause := time.Until(p.single.redial); c.want && (pause <= 0 || pause > firstRedial) {
			t.Errorf("%s: the next dial is in %v, want %v", c.name, pause, firstRedial)
		}
	}
}

// addressed is a connection to an address.
type addressed struct {
	recorder
	to string
}

func (a *addressed) RemoteAddr() net.Addr { return address(a.to) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// A pipeline leaves a server that is not the primary any more, and no other.
func TestAPipelineLeavesAFormerPrimary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, now string
		err       error
		leaves    bool
	}{
		{"the same", "a:1", nil, false},
		{"another", "b:1", nil, true},
		{"nobody knows", "", errors.New("no sentinel"), false},
	} {
		client := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
			return &addressed{to: c.now}, c.err
		}})
		t.Cleanup(func() { _ = client.Close() })
		n := newPipelines(client, nil).single
		conn := &pipelineConn{Conn: &addressed{to: "a:1"}}
		n.conn.Store(conn)
		n.verify(t.Context(), conn)
		if conn.isEnded() != c.leaves || (n.conn.Load() == nil) != c.leaves {
			t.Errorf("%s: ended %v, left %v; want %v", c.name, conn.isEnded(), n.conn.Load() == nil, c.leaves)
		}
	}
}

// A connection is used as long as the client's connections may be.
func TestAPipelinedConnectionIsReplacedInTime(t *testing.T) {
	t.Parallel()
	for lifetime, replaced := range map[time.Duration]bool{0: false, time.Nanosecond: true, time.Hour: false} {
		f := newFake(t, func(_, _ int, _ []string) string { return bulk("W") })
		o := &redis.Options{Addr: f.Addr, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true, ConnMaxLifetime: lifetime}
		client := redis.NewClient(o)
		t.Cleanup(func() { _ = client.Close() })
		s, err := New(client, Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		var conn *pipelineConn
		eventually(t, "a call is pipelined", func() bool {
			if c := connOf(s); c != nil {
				conn = c
			}
			if err := s.Release(t.Context(), store.ID{}, store.Owner{1}); err != nil {
				t.Fatal(err)
			}
			return conn != nil && !conn.idleSince().Equal(conn.born)
		})
		if replaced {
			eventually(t, "the connection is replaced", conn.isEnded)
		} else if conn.isEnded() {
			t.Errorf("with a lifetime of %v it is replaced after one call", lifetime)
		}
	}
}

// A call in a pipeline decides by its own replies, however many they are, and its hook
// hears of it. Another attempt of a call that did not fail stays in the pipeline.
func TestPipelinedClaims(t *testing.T) {
	t.Parallel()
	var found atomic.Value
	found.Store(claimed)
	completed := string(replayable("payload"))
	f := newFake(t, func(_, _ int, command []string) string {
		switch command[0] {
		case "set":
			return found.Load().(string) //nolint:forcetypeassert // see above
		case "pttl":
			return ":5000\r\n"
		case "getrange":
			return bulk(completed[:record.IdentitySize])
		default:
			return bulk("P\x00\x00\x00\x00\x00\x0f\x42\x40")
		}
	})
	var calls, batched atomic.Int64
	client := newClient(t, f)
	start := time.Now()
	s, err := New(client, Config{Hook: func(_ context.Context, p Pipelined) {
		calls.Add(1)
		if p.Batch == 1 {
			batched.Add(1)
		}
		if p.Start.Before(start) || p.Duration <= 0 || p.Duration > time.Minute || p.Server != f.Addr || p.Command == "" {
			t.Errorf("the hook hears %+v", p)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	eventually(t, "a claim is pipelined", func() bool {
		_, err := claim(t, s)
		return err == nil && calls.Load() > 0
	})
	for _, c := range []struct {
		name     string
		found    string
		validity bool
		want     store.ClaimResult
		calls    int64
	}{
		{"a new one", claimed, false, store.ClaimResult{Outcome: store.Claimed, Fence: 1999}, 1},
		{"a replay", bulk(completed), false, store.ClaimResult{Outcome: store.Completed}, 1},
		{"a replay and its validity", bulk(completed), true, store.ClaimResult{Outcome: store.Completed, Validity: 5 * time.Second}, 1},
		{"one in progress", bulk(string(recordOfClaim(store.Fingerprint{}))), false, store.ClaimResult{Outcome: store.InProgress}, 2},
	} {
		found.Store(c.found)
		r := store.ClaimRequest{Owner: store.Owner{1}, Lease: time.Minute, Retention: time.Hour, Validity: c.validity}
		most := int64(0)
		for range 3 { // one call a second goes through the client
			before := calls.Load()
			got, err := s.Claim(t.Context(), r)
			most = max(most, calls.Load()-before)
			if err != nil || got.Outcome != c.want.Outcome || got.Fence != c.want.Fence || got.Validity != c.want.Validity {
				t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
			}
		}
		if most != c.calls {
			t.Errorf("%s: %d calls were pipelined, want %d", c.name, most, c.calls)
		}
	}
	if calls.Load() != batched.Load() {
		t.Errorf("of %d calls, each alone, %d were in a batch of one", calls.Load(), batched.Load())
	}
}

// Large payloads share the connection in turn, each whole.
func TestLargeCallsShareAConnection(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, command []string) string {
		payload := command[len(command)-1]
		if len(payload) == largestPipelined && strings.Count(payload, payload[:1]) == largestPipelined {
			return bulk("D")
		}
		return bulk("W")
	})
	s, pipelined := newPipelined(t, f, Config{})
	before, errs := pipelined.Load(), make(chan error, 64)
	for i := range cap(errs) {
		go func() {
			payload := []byte(strings.Repeat(string(rune('a'+i%26)), largestPipelined))
			errs <- s.Complete(t.Context(), store.CompleteRequest{Owner: store.Owner{1}, Retention: time.Hour, Payload: payload})
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Errorf("complete: %v", err)
		}
	}
	if n := pipelined.Load() - before; n < int64(cap(errs)/2) {
		t.Errorf("%d of %d calls were pipelined", n, cap(errs))
	}
}
