package pipeline

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/store/redis/internal/fakeserver"
)

// text is a call of one command, which is answered with a string.
type text string

func (c text) AppendTo(b []byte) (out []byte, replies string) {
	out, _ = AppendCommand(b, []any{"do", string(c)})
	return out, "$"
}

// stated is a call of commands that are answered as it says.
type stated string

func (c stated) AppendTo(b []byte) (out []byte, replies string) {
	for range len(c) {
		b, _ = AppendCommand(b, []any{"do", string(c)})
	}
	return b, string(c)
}

// server is a server that answers every command with the same protocol, which may be
// another for its connection to the pipeline.
type server struct {
	*fakeserver.Server
	answer atomic.Value // of func(conn int, command []string) string
	last   atomic.Int64 // the connection of the last command
}

func startServer(tb testing.TB, answer func(conn int, command []string) string) *server {
	tb.Helper()
	s := &server{}
	s.answer.Store(answer)
	s.Server = fakeserver.Start(tb, func(conn int, command []string) string {
		s.last.Store(int64(conn))
		return s.answer.Load().(func(int, []string) string)(conn, command) //nolint:forcetypeassert // see above
	})
	return s
}

// answering returns a function that answers every command with the same protocol.
func answering(protocol string) func(int, []string) string {
	return func(int, []string) string { return protocol }
}

// answerPipeline answers the connection of the last command with another protocol.
func (s *server) answerPipeline(protocol string) {
	at, before := s.last.Load(), s.answer.Load().(func(int, []string) string) //nolint:forcetypeassert // see above
	s.answer.Store(func(conn int, command []string) string {
		if int64(conn) == at {
			return protocol
		}
		return before(conn, command)
	})
}

// connect returns a pipeline with a connection to a server.
func connect(tb testing.TB, s *server, change ...func(*redis.Options)) *pipeline {
	tb.Helper()
	o := &redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true, DialerRetries: 1, PoolSize: 1}
	for _, f := range change {
		f(o)
	}
	client := redis.NewClient(o)
	all := New(client)
	tb.Cleanup(func() {
		all.Close()
		_ = client.Close()
	})
	p := all.of(client)
	must(tb, p, "first")
	return p
}

// do sends a call, and connects and sends it again while it is left to the client.
func do(ctx context.Context, tb testing.TB, p *pipeline, c Call) (Answer, error) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { //nolint:forbidigo // polls
		a, err := p.do(ctx, c)
		if !errors.Is(err, errNotTaken) {
			return a, err
		}
		if time.Now().After(deadline) {
			tb.Fatal("no call was taken for a minute")
		}
		p.connect()
	}
}

// must sends a call that has to be answered with a string, and returns the string.
func must(tb testing.TB, p *pipeline, name string) string {
	tb.Helper()
	a, err := do(tb.Context(), tb, p, text(name))
	if err != nil || a.Replies[0].Kind != String {
		tb.Fatalf("%s: %+v, %v", name, a.Replies[0], err)
	}
	return a.Replies[0].Text
}

// eventually polls for up to a minute.
func eventually(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) { //nolint:forbidigo // polls
		if time.Now().After(deadline) {
			tb.Fatalf("not within a minute: %s", what)
		}
	}
}

// isEnded reports whether a connection takes no more writes.
func (c *conn) isEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// newCluster returns the pipelines for a cluster of one node, and its client.
func newCluster(tb testing.TB, addr string, change func(*redis.Options)) (*Pipelines, *redis.Client) {
	tb.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{addr}, PoolSize: 1, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
		},
		NewClient: func(o *redis.Options) *redis.Client { change(o); return redis.NewClient(o) },
	})
	p := New(client)
	tb.Cleanup(func() {
		p.Close()
		_ = client.Close()
	})
	node, err := client.MasterForKey(tb.Context(), "key")
	if err != nil {
		tb.Fatal(err)
	}
	return p, node
}

// recorder is a connection that notes its deadlines, and takes only part of a write.
type recorder struct {
	net.Conn
	takes       int // bytes of a write; negative: all
	reads, ends time.Time
	closed      bool
}

func (r *recorder) SetReadDeadline(at time.Time) error  { r.reads = at; return nil }
func (r *recorder) SetWriteDeadline(at time.Time) error { r.ends = at; return nil }
func (r *recorder) Close() error                        { r.closed = true; return nil }

func (r *recorder) Write(p []byte) (int, error) {
	if r.takes < 0 || len(p) <= r.takes {
		return len(p), nil
	}
	return r.takes, errors.New("cut")
}

// long returns a text of n bytes.
func long(n int) string { return strings.Repeat("y", n) }
