package repriseredis

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/fakeserver"
	"github.com/reprise-go/reprise/store/redis/internal/pipeline"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// fake is a server that answers as a test says, but for the second half of a native
// claim: see expiry. It logs the commands that it gets.
type fake struct {
	*fakeserver.Server
	answer func(conn, call int, command []string) string // call counts script calls and claims, from 1
	expiry string                                        // the answer to the second half of a native claim; empty: it was in time

	mu    sync.Mutex
	calls int
	set   map[int]string // the answer to the question for an expiry, by connection
	found map[int]string // the record that a pipelined claim reads, by connection
	log   []string       // every command after the handshake: its connection, name and arguments that are text
}

const servicePrefix = "orders:"

const (
	cut  = fakeserver.Cut
	mute = fakeserver.Mute
)

func bulk(s string) string { return fakeserver.Bulk(s) }

func newFake(tb testing.TB, answer func(conn, call int, command []string) string) *fake {
	tb.Helper()
	f := &fake{answer: answer}
	f.Server = fakeserver.Start(tb, f.reply)
	return f
}

func (f *fake) reply(conn int, command []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := strings.ToLower(command[0])
	switch name {
	case "eval", "evalsha":
		f.calls++
		f.log = append(f.log, fmt.Sprintf("%d %s", conn, name))
	case "set":
		f.calls++
		f.log = append(f.log, fmt.Sprintf("%d %s", conn, name))
		out := f.answer(conn, f.calls, command)
		f.noteExpiry(conn, command, out)
		if !slices.Contains(command, "get") {
			return f.splitFound(conn, out)
		}
		if out == claimed {
			out = "$-1\r\n"
		}
		return out
	case "getrange":
		return cmp.Or(f.found[conn], bulk(""))
	case "pexpiretime":
		if f.expiry != "" {
			return f.expiry
		}
		if f.set[conn] == "" {
			return ":-2\r\n"
		}
		return f.set[conn]
	default:
		f.log = append(f.log, fmt.Sprintf("%d %s", conn, strings.ToLower(strings.Join(command, " "))))
	}
	return f.answer(conn, f.calls, command)
}

// noteExpiry prepares the answer to the second half of a native claim: it was in the
// millisecond 1 of the server's clock, or is refused like the first half.
func (f *fake) noteExpiry(conn int, command []string, first string) {
	if f.set == nil {
		f.set = make(map[int]string)
	}
	span, _ := strconv.Atoi(command[slices.Index(command, "px")+1])
	f.set[conn] = fmt.Sprintf(":%d\r\n", span+1)
	if first == mute || strings.HasPrefix(first, "-") {
		f.set[conn] = first
	}
}

// splitFound returns the answer of a claim as that of its SET in a pipeline, and keeps
// the record, as far as a pipeline reads it, for GETRANGE.
func (f *fake) splitFound(conn int, out string) string {
	if f.found == nil {
		f.found = make(map[int]string)
	}
	f.found[conn] = ""
	switch {
	case out == claimed:
		return "+OK\r\n"
	case strings.HasPrefix(out, "$"):
		_, text, _ := strings.Cut(strings.TrimSuffix(out, "\r\n"), "\r\n")
		f.found[conn] = bulk(text[:min(len(text), pipeline.MaxReply)])
		return "$-1\r\n"
	case out == mute, strings.HasPrefix(out, "-"):
		f.found[conn] = out
	}
	return out
}

// seen returns the log.
func (f *fake) seen() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.log, ", ")
}

// sent returns the log without the connections: newer releases of go-redis send pipelines
// on others.
func (f *fake) sent() string {
	return connections.ReplaceAllString(f.seen(), "$1")
}

var connections = regexp.MustCompile(`(^|, )\d+ `)

// claimed is the answer of a claim that was granted: attempt 1, and, where a script was
// asked, fence 7 and one second.
var claimed = bulk("+\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x0f\x42\x40")

// newClient returns a client of f that dials once for each attempt, so that a dead server
// is noticed quickly.
func newClient(tb testing.TB, f *fake, change ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	o := &redis.Options{Addr: f.Addr, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true, DialerRetries: 1}
	for _, f := range change {
		f(o)
	}
	client := redis.NewClient(o)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// newStore returns a store over f that sends every command through the client. See
// newPipelined.
func newStore(tb testing.TB, f *fake, c Config) *Store {
	tb.Helper()
	c.Prefix, c.NoCombining = servicePrefix, true
	s, err := New(newClient(tb, f), c)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// claim makes a claim that is in order, and has five seconds.
func claim(tb testing.TB, s *Store) (store.ClaimResult, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Second)
	defer cancel()
	return s.Claim(ctx, store.ClaimRequest{Owner: store.Owner{1}, Lease: time.Second, Policy: store.Policy{Retention: time.Hour}})
}

// recordOfClaim returns the record of another owner's first attempt.
func recordOfClaim(fingerprint store.Fingerprint) []byte {
	return record.AppendClaimed(nil, &store.ClaimRequest{Owner: store.Owner{2}, Fingerprint: fingerprint, Lease: time.Second, Policy: store.Policy{Retention: time.Hour}})
}

// replayable returns the record of a completed operation.
func replayable(payload string) []byte {
	r := store.CompleteRequest{Owner: store.Owner{2}, Policy: store.Policy{Retention: time.Hour}, Payload: []byte(payload), Attempt: 1}
	return append(record.AppendCompleted(nil, &r), payload...)
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
	s, err := New(client, Config{Prefix: servicePrefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// eventually polls for up to a minute.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) { //nolint:forbidigo // polls
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
