package edges_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// The codes of gRPC, which are those of Connect.
const (
	invalidArgument    = 3
	deadlineExceeded   = 4
	failedPrecondition = 9
	aborted            = 10
	internal           = 13
	unavailable        = 14
	dataLoss           = 15
	unauthenticated    = 16
)

// detail reads the detail of a response that has the type of m, with the generated code
// of google.rpc.
func detail[M proto.Message](a answer, m M) M {
	for _, d := range a.details {
		name, value, _ := strings.Cut(d, " ")
		raw, err := hex.DecodeString(value)
		if name == string(m.ProtoReflect().Descriptor().FullName()) && err == nil && proto.Unmarshal(raw, m) == nil {
			return m
		}
	}
	return m
}

func infoOf(a answer) *errdetails.ErrorInfo { return detail(a, new(errdetails.ErrorInfo)) }

func reasonOf(a answer) string { return infoOf(a).GetReason() }

// delayOf returns how long a client is asked to wait, if both ways to say it agree.
func delayOf(a answer) time.Duration {
	delay := detail(a, new(errdetails.RetryInfo)).GetRetryDelay().AsDuration()
	pushback := a.get("grpc-retry-pushback-ms")
	if pushback != "" && pushback != strings.TrimSuffix((delay*1000).String(), "s") && delay != 0 {
		if n, err := time.ParseDuration(pushback + "ms"); err != nil || n != delay {
			return -1
		}
	}
	return delay
}

func unrecorded(e *env) {
	for _, out := range []outcome{{body: []byte("done")}, {code: failedPrecondition, header: []pair{{"x-order", "1"}}}} {
		st, faults := faultstore.New(memstore.New())
		faults.Always(faultstore.Complete, faultstore.FailBefore(store.ErrUnavailable))
		s := e.serve(setup{store: st, engine: reprise.Config{CompleteTimeout: 50 * time.Millisecond}, handler: always(out)})
		a := e.call(s, keyed("k"))
		if a.code != out.code || !bytes.Equal(a.body, out.body) || a.get("idempotency-status") != "unrecorded" {
			e.Errorf("the call got %+v", a)
		}
		faults.Clear(faultstore.Complete)
	}
}

func corruptRecord(e *env) {
	broken := protocol.CallResult{Type: "google.protobuf.BytesValue", Body: []byte{8}}
	store, hijack := hijacking(memstore.New(), encoded(broken.Response()))
	s := e.serve(setup{store: store, handler: func(context.Context, *request) outcome { hijack(); return outcome{} }})
	e.call(s, keyed("k"))
	if a := e.call(s, keyed("k")); a.code != dataLoss {
		e.Errorf("the retry got %+v", a)
	}
	e.wantRuns(s, 1)
}

func encoded(r protocol.Response) []byte {
	payload, err := operate.Encode(r)
	if err != nil {
		panic(err)
	}
	return payload
}

// superseded has another owner complete the record while the handler runs.
func superseded(e *env) {
	other := protocol.CallResult{Type: "google.protobuf.BytesValue", Body: []byte("\x0a\x05other"), Trailer: protocol.NewHeader(protocol.Field{Name: "x-of", Value: "other"})}
	failed := protocol.CallResult{Code: 5, Message: "other", Trailer: other.Trailer}
	for _, own := range []outcome{
		{body: []byte("own"), header: []pair{{"x-order", "own"}}, trailer: []pair{{"x-of", "own"}}},
		{body: []byte("own"), header: []pair{{"x-order", "own"}}, trailer: []pair{{"x-of", "own"}}, early: true},
		{code: 3, header: []pair{{"x-order", "own"}}, trailer: []pair{{"x-of", "own"}}},
	} {
		for _, want := range []protocol.CallResult{other, failed} {
			store, hijack := hijacking(memstore.New(), encoded(want.Response()))
			s := e.serve(setup{store: store, handler: func(context.Context, *request) outcome { hijack(); return own }})
			a := e.call(s, keyed("k"))
			if a.code != want.Code || a.message != want.Message || want.Code == 0 && string(a.body) != "other" {
				e.Errorf("the call got %+v", a)
			}
			if a.get("x-of") != "other" || a.get("x-order") != "" || a.get("x-outer") != "1" || !a.replayed() {
				e.Errorf("its metadata is %v, %v", a.header, a.trailer)
			}
		}
	}
}

// hijacking returns a store, and a function that completes the last claim with payload as
// another owner would who took it over.
func hijacking(inner store.Store, payload []byte) (store.Store, func()) {
	s := &hijacked{Store: inner}
	return s, func() {
		s.mu.Lock()
		last := s.last
		s.mu.Unlock()
		ctx := context.Background()
		if err := s.Release(ctx, last.ID, last.Owner); err != nil {
			panic(err)
		}
		last.Owner[0] ^= 0xff
		claim, err := s.Store.Claim(ctx, last)
		if err == nil && claim.Outcome == store.Claimed {
			err = s.Complete(ctx, store.CompleteRequest{ID: last.ID, Owner: last.Owner, Payload: payload, Policy: store.Policy{Retention: last.Retention}})
		}
		if err != nil {
			panic(err)
		}
	}
}

type hijacked struct {
	store.Store

	mu   sync.Mutex
	last store.ClaimRequest
}

func (s *hijacked) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	s.mu.Lock()
	s.last = r
	s.mu.Unlock()
	return s.Store.Claim(ctx, r)
}

func streams(e *env) {
	var mu sync.Mutex
	var events []reprise.Event
	s := e.serve(setup{Config: protocol.Config{Required: true}, engine: reprise.Config{Observer: reprise.ObserverFunc(func(_ context.Context, event reprise.Event) {
		mu.Lock()
		defer mu.Unlock()
		if event.Kind != reprise.EventDeclared { // of the guard
			events = append(events, event)
		}
	})}})
	if a := s.stream(e.Context(), call{}); a.code != 0 || a.body[0] != 3 || a.get("idempotency-status") != "" {
		e.Errorf("a stream without a key: %+v", a)
	}
	for range 2 {
		if a := s.stream(e.Context(), keyed("k")); a.code != 0 || a.body[0] != 3 || a.get("idempotency-status") != "unprotected" {
			e.Errorf("a stream with a key: %+v", a)
		}
	}
	if a := s.stream(e.Context(), call{procedure: list, keys: []string{"k"}}); a.code != 0 || a.body[0] != 3 || a.get("idempotency-status") != "" {
		e.Errorf("a stream that has no side effects, with a key: %+v", a)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(events) != 2 || events[0].Name() != "unprotected" || events[0].Err == nil || events[0].Counted {
		e.Errorf("the observer got %v", events)
	}
	skipping := e.serve(setup{Config: protocol.Config{Skip: func(_ context.Context, r *protocol.Request) bool { return r.Path == watch }}})
	if a := skipping.stream(e.Context(), keyed("k")); a.code != 0 || a.get("idempotency-status") != "" {
		e.Errorf("a stream with a key that Skip leaves out: %+v", a)
	}
}

// TestOneCallOverAllProtocols retries one call through every protocol, codec and
// compression that a server of Connect has.
func TestOneCallOverAllProtocols(t *testing.T) {
	t.Parallel()
	for name, out := range map[string]outcome{
		"message": {body: allBytes(), header: []pair{{"x-order", "1"}}, trailer: []pair{{"x-sum", "abc"}}},
		"error":   {code: 9, message: "sold out", header: []pair{{"x-order", "1"}}, trailer: []pair{{"x-sum", "abc"}}, details: []proto.Message{new(errdetails.BadRequest)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var addr string
			e := &env{T: t, target: target{"grpc-go to Connect", func(t *testing.T, s *service, scope scopeOf) string {
				t.Helper()
				addr = startConnect(t, s, scope)
				return addr
			}, dialGRPC}}
			s := e.serve(setup{handler: always(out)})
			first := e.call(s, keyed("k"))
			for _, other := range targets {
				again := other.dial(t, addr).call(t.Context(), keyed("k"))
				e.same(first, again)
				if !again.replayed() || again.get("x-order") != "1" || again.get("x-sum") != "abc" {
					t.Errorf("%s got %+v", other.name, again)
				}
			}
			e.wantRuns(s, 1)
		})
	}
}
