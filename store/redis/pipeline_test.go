package repriseredis

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// newPipelined returns a store over f whose pipeline is connected, and a count of the
// calls that it sends. It releases to get there, which f has to answer.
func newPipelined(t *testing.T, f *fake, c Config) (*Store, *atomic.Int64) {
	t.Helper()
	var pipelined atomic.Int64
	c.Hook = func(context.Context, Pipelined) { pipelined.Add(1) }
	s, err := New(newClient(t, f), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for deadline := time.Now().Add(10 * time.Second); pipelined.Load() == 0; {
		if err := s.Release(t.Context(), store.ID{}, store.Owner{1}); err != nil || time.Now().After(deadline) {
			t.Fatalf("no call was pipelined: %v", err)
		}
	}
	s.pipelines.single.sample.Store(false) // and so is the next one
	return s, &pipelined
}

// What failed in a pipeline is repeated by the client, which knows about redirects, other
// servers and scripts.
func TestARepetitionGoesThroughTheClient(t *testing.T) {
	t.Parallel()
	for _, failure := range []string{
		"-LOADING Redis is loading the dataset in memory\r\n",
		"-NOSCRIPT No matching script. Please use EVAL.\r\n",
		"-READONLY You can't write against a read only replica.\r\n",
		cut,
		"what is this?\r\n",
	} {
		var armed atomic.Bool
		f := newFake(t, func(_, _ int, _ []string) string {
			if armed.CompareAndSwap(true, false) {
				return failure
			}
			return bulk("W")
		})
		s, pipelined := newPipelined(t, f, Config{})
		before := pipelined.Load()
		armed.Store(true)
		if err := s.Release(t.Context(), store.ID{}, store.Owner{1}); err != nil {
			t.Errorf("%q: %v", failure, err)
		}
		log := strings.Split(f.seen(), ", ")
		first, _, _ := strings.Cut(log[len(log)-2], " ")
		second, _, _ := strings.Cut(log[len(log)-1], " ")
		if n := pipelined.Load() - before; n != 1 || first == second {
			t.Errorf("%q: %d calls were pipelined, want the first; sent %q", failure, n, log[len(log)-2:])
		}
	}
}

// A connection on which one reply too many arrives gives calls the answers of others:
// one that lost its lease would be told that its answer is kept. So a reply that is none
// to its command ends the connection.
func TestACallNeverGetsTheAnswerOfAnother(t *testing.T) {
	t.Parallel()
	const calls = 8
	for name, extra := range map[string]string{
		"a status":  "+OK\r\n",
		"a number":  ":1\r\n",
		"an array":  "*1\r\n:1\r\n",
		"a boolean": "#t\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := map[string]string{"kept": bulk("D"), "lost": bulk("X")}
			var conn *pipelineConn
			var armed atomic.Int64 // its number
			f := newFake(t, func(number, _ int, command []string) string {
				answer, completes := answers[command[len(command)-1]]
				switch {
				case !completes:
					return bulk("W")
				case armed.CompareAndSwap(int64(number), 0):
					for conn.inFlight.Load() < calls-1 { // one a second goes through the client
						time.Sleep(time.Millisecond) //nolint:forbidigo // polls
					}
					return extra + answer
				default:
					return answer
				}
			})
			s, _ := newPipelined(t, f, Config{})
			conn = s.pipelines.single.conn.Load()
			armed.Store(lastConnection(f))
			var completing sync.WaitGroup
			for i := range calls {
				completing.Go(func() {
					payload, want := "kept", error(nil)
					if i%2 == 1 {
						payload, want = "lost", store.ErrLeaseLost
					}
					r := store.CompleteRequest{Owner: store.Owner{1}, Retention: time.Hour, Payload: []byte(payload)}
					if err := s.Complete(t.Context(), r); !errors.Is(err, want) {
						t.Errorf("%s: %v, want %v", payload, err, want)
					}
				})
			}
			completing.Wait()
		})
	}
}

// A server may end what authenticates a connection before it ends the connection. Only
// the calls that are on their way fail.
func TestAConnectionWithoutAuthenticationIsReplaced(t *testing.T) {
	t.Parallel()
	var expired atomic.Int64
	f := newFake(t, func(conn, _ int, _ []string) string {
		if int64(conn) == expired.Load() {
			return "-NOAUTH Authentication required.\r\n"
		}
		return bulk("W")
	})
	s, pipelined := newPipelined(t, f, Config{})
	expired.Store(lastConnection(f))
	failed := 0
	for before := pipelined.Load(); pipelined.Load() < before+10; {
		if err := s.Release(t.Context(), store.ID{}, store.Owner{1}); err != nil {
			failed++
		}
	}
	if failed > 1 {
		t.Errorf("%d calls failed, want the first", failed)
	}
}

// lastConnection returns the connection on which f got its last command.
func lastConnection(f *fake) int64 {
	log := strings.Split(f.seen(), ", ")
	conn, _, _ := strings.Cut(log[len(log)-1], " ")
	n, _ := strconv.ParseInt(conn, 10, 64)
	return n
}

// What rules out a pipeline to a single server rules it out to a node of a cluster.
func TestWhichNodesOfAClusterHavePipelines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*redis.Options)
		want   bool
	}{
		{"nothing special", func(*redis.Options) {}, true},
		{"a limiter has to see every command", func(o *redis.Options) { o.Limiter = limiter{} }, false},
		{"credentials change on connections that are in use", func(o *redis.Options) { o.StreamingCredentialsProvider = streamed{} }, false},
	} {
		s := newClusterStore(t, "127.0.0.1:1", c.change)
		command := &command{script: record.ReleaseScript}
		s.call(t.Context(), command, store.ID{})
		if got := s.pipelineFor(t.Context(), command); (got != nil) != c.want {
			t.Errorf("%s: a pipeline %v, want %v", c.name, got != nil, c.want)
		}
	}
}

// newClusterStore returns a store over a cluster of one node.
func newClusterStore(t *testing.T, addr string, change func(*redis.Options)) *Store {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{addr}, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
		},
		NewClient: func(o *redis.Options) *redis.Client { change(o); return redis.NewClient(o) },
	})
	t.Cleanup(func() { _ = client.Close() })
	s, err := New(client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A pipeline that was not used is forgotten, and a call that came at that moment makes it
// connect again. Close does not wait until it is idle once more.
func TestCloseEndsAPipelineThatWasForgotten(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return bulk("W") })
	s := newClusterStore(t, f.Addr, func(*redis.Options) {})
	command := &command{script: record.ReleaseScript}
	s.call(t.Context(), command, store.ID{})
	n := s.pipelineFor(t.Context(), command)
	s.pipelines.forget(n)
	n.connect()
	for deadline := time.Now().Add(10 * time.Second); n.conn.Load() == nil; {
		if time.Now().After(deadline) {
			t.Fatal("no connection")
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // polls
	}
	start := time.Now()
	_ = s.Close()
	if took := time.Since(start); took > pipelineIdle/2 {
		t.Errorf("Close took %v", took)
	}
}

// Replies come in pieces, in both versions of the protocol, and with things between them
// that nobody asked for.
func TestRepliesAreRead(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]reply{
		"$3\r\nabc\r\n":                       {kind: replyText, text: "abc"},
		"$0\r\n\r\n":                          {kind: replyText},
		"$-1\r\n":                             {kind: replyNil},
		"*-1\r\n":                             {kind: replyNil},
		"_\r\n":                               {kind: replyNil},
		":-12\r\n":                            {kind: replyNumber, number: -12},
		"+OK\r\n":                             {kind: replyOther},
		"-ERR no\r\n":                         {kind: replyError, text: "ERR no"},
		"!6\r\nERR no\r\n":                    {kind: replyError, text: "ERR no"},
		"*2\r\n:1\r\n$1\r\na\r\n":             {kind: replyOther},
		"%1\r\n+a\r\n:1\r\n":                  {kind: replyOther},
		">2\r\n+message\r\n$1\r\nx\r\n:7\r\n": {kind: replyNumber, number: 7},
		"|1\r\n+ttl\r\n:3\r\n$1\r\nx\r\n":     {kind: replyText, text: "x"},
		"$70000\r\n" + strings.Repeat("y", 70_000) + "\r\n": {kind: replyText, text: strings.Repeat("y", 70_000)},
	} {
		r := bufio.NewReaderSize(iotestOneByte{strings.NewReader(in + ":99\r\n")}, 64)
		got, err := readReply(r)
		if err != nil || got != want {
			t.Errorf("%.40q reads %+.60v, %v", in, got, err)
		}
		if next, err := readReply(r); err != nil || next.number != 99 {
			t.Errorf("after %.40q comes %+.60v, %v", in, next, err)
		}
	}
	for _, in := range []string{"\r\n", "x\r\n", "$x\r\n", "$-2\r\n", "$999999999999\r\n", "$3\r\nabcd\r\n", ":a\r\n", ":1\n", strings.Repeat("+", 100) + "\r\n", strings.Repeat("*1\r\n", 20)} {
		if got, err := readReply(bufio.NewReaderSize(strings.NewReader(in), 64)); !errors.Is(err, errProtocol) {
			t.Errorf("%.40q reads %+v, %v", in, got, err)
		}
	}
	if _, err := readReply(bufio.NewReader(strings.NewReader("$5\r\nab"))); !errors.Is(err, io.EOF) {
		t.Errorf("a reply that is cut: %v", err)
	}
}

// iotestOneByte reads one byte at a time.
type iotestOneByte struct{ r io.Reader }

func (o iotestOneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 1)]) }

func FuzzReplies(f *testing.F) {
	for _, in := range []string{"$3\r\nabc\r\n", "*2\r\n:1\r\n_\r\n", "|1\r\n+a\r\n:1\r\n-ERR\r\n", "|1\r\n", "%1\r\n+a\r\n", "%x\r\n", "!2\r\n000", "$3\r\nabc"} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bufio.NewReaderSize(strings.NewReader(string(in)), 64)
		for range len(in) + 1 {
			if _, err := readReply(r); err != nil {
				return
			}
		}
		t.Error("replies of no bytes")
	})
}

// The arguments of a command are written as go-redis writes them.
func TestArgumentsAreWritten(t *testing.T) {
	t.Parallel()
	text, number, bytes := "k", int64(-7), blob("b\r\n")
	got, ok := appendCommand(nil, []any{"set", &text, &bytes, 3, int64(4), &number})
	if want := "*6\r\n$3\r\nset\r\n$1\r\nk\r\n$3\r\nb\r\n\r\n$1\r\n3\r\n$1\r\n4\r\n$2\r\n-7\r\n"; !ok || string(got) != want {
		t.Errorf("wrote %q, %v; want %q", got, ok, want)
	}
	if _, ok := appendCommand(nil, []any{1.5}); ok {
		t.Error("wrote an argument of a type that no command has")
	}
}
