package repriseredis

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/pipeline"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// newPipelined returns a store over f whose pipeline is connected, and a count of the
// calls that it sends. It releases to get there, which f has to answer.
func newPipelined(t *testing.T, f *fake, c Config) (*Store, *atomic.Int64) {
	t.Helper()
	var pipelined atomic.Int64
	hook := c.Hook
	c.Prefix = servicePrefix
	c.Hook = func(ctx context.Context, p Pipelined) {
		pipelined.Add(1)
		if hook != nil {
			hook(ctx, p)
		}
	}
	s, err := New(newClient(t, f, func(o *redis.Options) { o.PoolSize = 1 }), c) // takes a call that is alone, too
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for deadline := time.Now().Add(time.Minute); pipelined.Load() == 0; {
		if err := s.Release(t.Context(), store.ID{}, store.Owner{1}); err != nil || time.Now().After(deadline) {
			t.Fatalf("no call was pipelined: %v", err)
		}
	}
	return s, &pipelined
}

// untilPipelined makes a call until the pipeline took it, since one a second goes through
// the client, and returns the result of the last one.
func untilPipelined[T any](t *testing.T, pipelined *atomic.Int64, call func() T) (last T) {
	t.Helper()
	before := pipelined.Load()
	for range 4 {
		if last = call(); pipelined.Load() > before {
			return last
		}
	}
	t.Fatal("no call was pipelined")
	return last
}

// A call that failed in a pipeline is repeated by the client, which knows about
// redirects, other servers and scripts.
func TestRepetitionGoesThroughTheClient(t *testing.T) {
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
		if err := untilPipelined(t, pipelined, func() error {
			armed.Store(true)
			return s.Release(t.Context(), store.ID{}, store.Owner{1})
		}); err != nil {
			t.Errorf("%q: %v", failure, err)
		}
		log := strings.Split(f.seen(), ", ")
		first, _, _ := strings.Cut(log[len(log)-2], " ")
		second, _, _ := strings.Cut(log[len(log)-1], " ")
		if first == second {
			t.Errorf("%q: sent %q on one connection", failure, log[len(log)-2:])
		}
	}
}

// Only calls whose payloads and replies are bounded share a connection.
func TestPipelinedCallsAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		c    command
		want bool
	}{
		{"a native claim", command{script: record.ClaimScript, claim: &nativeClaim{}}, true},
		{"the script of a claim", command{script: record.ClaimScript}, false},
		{"a release", command{script: record.ReleaseScript}, true},
		{"a small completion", command{script: record.CompleteScript, payload: make(blob, pipeline.MaxPayload)}, true},
		{"a large completion", command{script: record.CompleteScript, payload: make(blob, pipeline.MaxPayload+1)}, false},
		{"a large resolution", command{script: record.ResolveScript, payload: make(blob, pipeline.MaxPayload+1)}, false},
		{"an inspection", command{script: record.InspectScript}, false},
		{"a renewal", command{script: record.RenewScript}, false},
	} {
		if got := c.c.isBounded(); got != c.want {
			t.Errorf("%s: bounded %v, want %v", c.name, got, c.want)
		}
	}
}

// A pipeline sends all commands of a call.
func TestPipelinedCallsAreWhole(t *testing.T) {
	t.Parallel()
	s := &Store{}
	c := &command{script: record.CompleteScript, payload: make([]byte, 1000)}
	s.call(t.Context(), c, store.ID{}, &c.payload)
	if out, replies := c.AppendTo(nil); replies != "$" || len(out) <= 1000 {
		t.Errorf("replies %q to %d bytes", replies, len(out))
	}
	n := &nativeClaim{request: store.ClaimRequest{Owner: store.Owner{1}, Lease: time.Second, Policy: store.Policy{Retention: time.Hour}}}
	n.prepare(t.Context())
	if out, replies := n.AppendTo(nil); replies != "+:$" || strings.Count(string(out), "*") < 3 || strings.Contains(string(out), "\r\nget\r\n") || len(replies) > pipeline.MaxReplies {
		t.Errorf("replies %q to the claim %q", replies, out)
	}
	n.args[1] = 1.5
	if _, replies := n.AppendTo(nil); replies != "" {
		t.Errorf("replies %q to a command with an argument of an unknown type", replies)
	}
}

// A claim in a pipeline decides by its own replies, however many they are, and its hook
// hears of it. A record that it did not read whole is read by the client.
func TestPipelinedClaimsDecideLikeOthers(t *testing.T) {
	t.Parallel()
	var found atomic.Value
	found.Store(claimed)
	completed := string(replayable("payload"))
	fits := strings.Repeat("x", pipeline.MaxReply-len(completed)+len("payload"))
	largest := string(replayable(fits))
	f := newFake(t, func(_, _ int, command []string) string {
		switch command[0] {
		case "set":
			return found.Load().(string) //nolint:forcetypeassert // see above
		default:
			if command[1] == record.ReleaseScript.Digest {
				return bulk("W")
			}
			return bulk("P\x00\x00\x00\x00\x00\x0f\x42\x40")
		}
	})
	start := time.Now()
	s, pipelined := newPipelined(t, f, Config{Hook: func(_ context.Context, p Pipelined) {
		if p.Batch != 1 || p.Start.Before(start) || p.Duration <= 0 || p.Duration > time.Minute || p.Server != f.Addr || p.Command == "" {
			t.Errorf("the hook hears %+v", p)
		}
	}})
	for _, c := range []struct {
		name  string
		found string
		want  store.ClaimResult
		err   error
		sent  string
	}{
		{"a new one", claimed, store.ClaimResult{Outcome: store.Claimed, Fence: 1999}, nil, "set"},
		{"a replay", bulk(completed), store.ClaimResult{Outcome: store.Completed, Payload: []byte("payload")}, nil, "set"},
		{"a replay of the largest size", bulk(largest), store.ClaimResult{Outcome: store.Completed, Payload: []byte(fits)}, nil, "set"},
		{"a larger replay", bulk(string(replayable(fits + "x"))), store.ClaimResult{Outcome: store.Completed, Payload: []byte(fits + "x")}, nil, "set, set of the client"},
		{"one in progress", bulk(string(recordOfClaim(store.Fingerprint{}))), store.ClaimResult{Outcome: store.InProgress}, nil, "set, evalsha of the client"},
		{"one that is gone when it is read", bulk(""), store.ClaimResult{}, store.ErrCorrupt, "set, set of the client"},
		{"memory is full", "-OOM command not allowed when used memory > 'maxmemory'.\r\n", store.ClaimResult{Outcome: store.InProgress}, nil, "set, evalsha of the client"},
		{"a cut record", bulk(completed[:len(completed)-1]), store.ClaimResult{}, store.ErrCorrupt, "set"},
	} {
		found.Store(c.found)
		r := store.ClaimRequest{Owner: store.Owner{1}, Lease: time.Minute, Policy: store.Policy{Retention: time.Hour}}
		var log string
		got := untilPipelined(t, pipelined, func() claimAnswer {
			before := len(f.seen())
			got, err := s.Claim(t.Context(), r)
			log = strings.TrimPrefix(f.seen()[before:], ", ")
			return claimAnswer{got, err}
		})
		if !errors.Is(got.err, c.err) || got.Outcome != c.want.Outcome || got.Fence != c.want.Fence || !bytes.Equal(got.Payload, c.want.Payload) {
			t.Errorf("%s: %v, fence %d, a payload of %d bytes, %v; want %v, %d, %d, %v", c.name, got.Outcome, got.Fence, len(got.Payload), got.err,
				c.want.Outcome, c.want.Fence, len(c.want.Payload), c.err)
		}
		var sent []string
		pipe, _, _ := strings.Cut(log, " ")
		for command := range strings.SplitSeq(log, ", ") {
			conn, name, _ := strings.Cut(command, " ")
			if conn != pipe {
				name += " of the client"
			}
			sent = append(sent, name)
		}
		if got := strings.Join(sent, ", "); got != c.sent {
			t.Errorf("%s: sent %q, want %q", c.name, got, c.sent)
		}
	}
}

type claimAnswer struct {
	store.ClaimResult
	err error
}

// The client is closed under a store that goes on: no pipeline is dialled any more.
func TestClosedClientEndsThePipelines(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return bulk("W") })
	s, pipelined := newPipelined(t, f, Config{})
	_ = s.client.(*redis.Client).Close() //nolint:forcetypeassert // it is one
	eventually(t, "a call finds it closed", func() bool {
		return errors.Is(s.Release(t.Context(), store.ID{}, store.Owner{1}), store.ErrClosed)
	})
	eventually(t, "the pipeline ends", func() bool {
		before := pipelined.Load()
		for range 10 {
			if err := s.Release(t.Context(), store.ID{}, store.Owner{1}); !errors.Is(err, store.ErrClosed) {
				return false
			}
		}
		return pipelined.Load() == before
	})
}
