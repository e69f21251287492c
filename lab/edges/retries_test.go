package edges_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	repriseclient "github.com/reprise-go/reprise/client"
	repriseconnectclient "github.com/reprise-go/reprise/client/connect"
	"github.com/reprise-go/reprise/conformance/faultstore"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// begun waits for the run of a call, which must not have ended before.
func begun(t *testing.T, running <-chan struct{}, got <-chan answer) {
	t.Helper()
	select {
	case <-running:
	case a := <-got:
		t.Fatalf("the client got %+v", a)
	}
}

// The connection breaks while the handler runs, and its result reaches the client with
// the retry, which has the caller's metadata.
func TestBrokenConnectionIsRetriedWithTheKey(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, c caller) {
		h, running, letGo := hold()
		tenant := func(_ context.Context, metadata func(string) string) (string, error) {
			return metadata("x-tenant"), nil
		}
		s := c.start(t, setup{Config: protocol.Config{Required: true}, scope: tenant, handler: h}, callerConfig{Client: quick()})
		var once sync.Once
		s.log.each = func(int, repriseclient.AttemptEnd) { once.Do(letGo) }
		got := make(chan answer, 1)
		go func() { got <- s.service.call(t.Context(), call{metadata: []pair{{"x-tenant", "1"}}}) }()
		begun(t, running, got)
		s.proxy.Cut()
		if a := <-got; a.err != nil || string(a.body) != "done" || !a.replayed() {
			t.Errorf("the client got %+v", a)
		}
		s.wantRuns(s.service, 1)
	})
}

// An operation in progress is waited for by time alone: the answers are neither attempts
// nor retries of the budget.
func TestCallWaitsForTheOneInProgress(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, c caller) {
		h, running, letGo := hold()
		cfg := quick()
		cfg.MaxAttempts, cfg.Budget = 2, repriseclient.Budget{Burst: 1}
		s := c.start(t, setup{handler: h}, callerConfig{Client: cfg})
		var once sync.Once
		s.log.each = func(n int, e repriseclient.AttemptEnd) {
			if n == 3 {
				once.Do(letGo)
			}
			if e.Retry && (e.Wait < time.Second || e.Code != repriseclient.CodeInProgress) {
				t.Errorf("attempt %d ended as %+v, and the service said in-progress, 1 s", n, e)
			}
		}
		first := dialGRPC(t, s.proxy.Addr())
		ended := make(chan answer, 1)
		go func() { ended <- first.call(t.Context(), keyed(`"k"`)) }()
		<-running
		a := s.service.call(repriseclient.WithKey(t.Context(), "k"), call{})
		if a.err != nil || string(a.body) != "done" || !a.replayed() {
			t.Errorf("the client got %+v", a)
		}
		s.log.want(t, repriseclient.AnsweredReplay, 4)
		once.Do(letGo) // if the client did not wait
		if a := <-ended; string(a.body) != "done" {
			t.Errorf("the first client got %+v", a)
		}
		s.wantRuns(s.service, 1)
	}, transported...)
}

// expiring is a context whose deadline passes when its channel is closed.
type expiring struct {
	context.Context

	passed chan struct{}
}

func (c expiring) Done() <-chan struct{} { return c.passed }

func (c expiring) Err() error {
	select {
	case <-c.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A client whose deadline passes, or that cancels, while the handler runs does not know
// the outcome, and its error says so beside the code.
func TestDeadlineOfARunningCallIsUnknown(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, c caller) {
		h, running, letGo := hold()
		defer letGo()
		s := c.start(t, setup{handler: h}, callerConfig{Client: quick()})
		cancelled, cancel := context.WithCancel(t.Context())
		late := expiring{context.WithoutCancel(t.Context()), make(chan struct{})}
		for _, c := range []struct {
			ctx  context.Context
			end  func()
			code uint32
		}{{cancelled, cancel, 1}, {late, func() { close(late.passed) }, deadlineExceeded}} {
			go func() { <-running; c.end() }()
			a := s.service.call(c.ctx, call{})
			var unknown *repriseclient.UnknownOutcomeError
			if !errors.As(a.err, &unknown) || unknown.Key() == "" || repriseclient.NotSent(a.err) || a.code != c.code {
				t.Errorf("the client got %+v", a)
			}
			s.log.want(t, repriseclient.OutcomeUnknown, 1)
		}
	})
}

// A call that got no connection did not run.
func TestRefusedConnectionIsNotSent(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, c caller) {
		cfg := quick()
		cfg.MaxAttempts = 3
		s := c.start(t, setup{}, callerConfig{Client: cfg})
		s.proxy.Set(t, servers.Refuse)
		a := s.service.call(t.Context(), call{})
		var not *repriseclient.NotSentError
		if !errors.As(a.err, &not) || !repriseclient.NotSent(a.err) || not.Attempts != 3 || a.code != unavailable {
			t.Errorf("the client got %+v", a)
		}
		s.wantRuns(s.service, 0)
	})
}

// A server that accepts connections and never answers leaves grpc-go without one.
func TestDeadlineWithoutAConnectionIsNotSent(t *testing.T) {
	t.Parallel()
	silent := listen(t)
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	a := dialGRPCCaller(t, silent.Addr().String(), callerConfig{Client: quick()}).call(ctx, call{})
	if !repriseclient.NotSent(a.err) || a.code != deadlineExceeded {
		t.Errorf("the client got %+v", a)
	}
}

// A response of which nothing, or only a part, arrived is not the service's, whatever
// status the library invents for it: it is retried, and at the bounds the outcome is
// unknown.
func TestResponseThatBreaksOffIsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, sent := range []string{"no header", "", "\x00\x00\x00", "\x00\x00\x00\x00\x06\x0a\x04do"} {
		addr := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if sent == "no header" {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
			_, _ = w.Write([]byte(sent))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}))
		eachCaller(t, func(t *testing.T, c caller) {
			cfg, log := quick(), new(attempts)
			cfg.MaxAttempts, cfg.Observer = 2, log
			a := c.dial(t, addr, callerConfig{Client: cfg}).call(t.Context(), call{})
			var unknown *repriseclient.UnknownOutcomeError
			if !errors.As(a.err, &unknown) || a.code == 0 {
				t.Errorf("after %q the client got %+v", sent, a)
			}
			log.want(t, repriseclient.OutcomeUnknown, 2)
		})
	}
}

// A refusal that no retry changes is returned as the service sent it.
func TestReusedKeyIsNotRetried(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, c caller) {
		s := c.start(t, setup{}, callerConfig{Client: quick()})
		ctx := repriseclient.WithKey(t.Context(), "k")
		s.service.call(ctx, call{in: "book"})
		a := s.service.call(ctx, call{in: "boot"})
		if a.code != failedPrecondition || c.refusalOf(a.err) != repriseclient.CodeKeyReused || reasonOf(a) != "KEY_REUSED" {
			t.Errorf("the client got %+v", a)
		}
		s.log.want(t, repriseclient.Answered, 1)
	})
}

// A service that has no store refuses, and says when to come back; a client that may not
// wait as long does not know the outcome.
func TestRefusalAtTheBoundsIsUnknown(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, c caller) {
		st, faults := faultstore.New(memstore.New())
		faults.Always(faultstore.Claim, faultstore.FailBefore(store.ErrUnavailable))
		cfg := quick()
		cfg.MaxRetryAfter = time.Second // the service says 2
		s := c.start(t, setup{store: st}, callerConfig{Client: cfg})
		a := s.service.call(t.Context(), call{})
		var unknown *repriseclient.UnknownOutcomeError
		if !errors.As(a.err, &unknown) || a.code != unavailable || c.refusalOf(a.err) != repriseclient.CodeStoreUnavailable {
			t.Errorf("the client got %+v", a)
		}
		s.log.want(t, repriseclient.GaveUpRetrying, 1)
		s.log.mu.Lock()
		defer s.log.mu.Unlock()
		if e := s.log.ended[0]; e.Code != repriseclient.CodeStoreUnavailable {
			t.Errorf("the observer got %+v", e)
		}
	})
}

// A call whose attempts all take too long has the code of a deadline: its caller did not
// cancel it. The server is silent from the beginning, or after its header.
func TestAttemptTimeoutHasTheCodeOfADeadline(t *testing.T) {
	t.Parallel()
	silent := func(begin bool) (addr string) {
		return serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // net/http then notices that the client left
			if begin {
				w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}))
	}
	addrs := []string{silent(false), silent(true)}
	eachCaller(t, func(t *testing.T, c caller) {
		cfg := quick()
		cfg.MaxAttempts, cfg.AttemptTimeout = 2, 100*time.Millisecond
		for i, addr := range addrs {
			a := c.dial(t, addr, callerConfig{Client: cfg}).call(t.Context(), call{})
			if a.code != deadlineExceeded || !errors.Is(a.err, repriseclient.ErrAttemptTimeout) || errors.Is(a.err, context.Canceled) {
				t.Errorf("server %d: the client got %+v", i, a)
			}
		}
	})
}

// A caller that ends its call while it waits for the next attempt gets the code of that,
// not the code of the attempt before.
func TestCancelBetweenAttemptsHasItsCode(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, c caller) {
		for _, cause := range []error{context.Canceled, errors.New("the program ends")} {
			ctx, cancel := context.WithCancelCause(t.Context())
			log := &attempts{each: func(int, repriseclient.AttemptEnd) { cancel(cause) }}
			a := c.dial(t, "127.0.0.1:1", callerConfig{Client: repriseclient.Config{Observer: log}}).call(ctx, call{}) // it refuses
			var not *repriseclient.NotSentError
			if a.code != 1 || !errors.Is(a.err, cause) || !errors.As(a.err, &not) || not.Attempts != 1 {
				t.Errorf("%v: the client got %+v", cause, a)
			}
		}
	})
}

// Two calls with one message are two operations, and one key in the metadata and in the
// context is one.
func TestEachCallHasItsKey(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, c caller) {
		s := c.start(t, setup{Config: protocol.Config{Required: true, KeyMode: protocol.Strict}}, callerConfig{Client: quick()})
		for n := byte(1); n <= 2; n++ {
			if a := s.service.call(t.Context(), call{}); a.err != nil || a.body[0] != n {
				t.Errorf("call %d got %+v", n, a)
			}
		}
		ctx := repriseclient.WithKey(t.Context(), "k")
		for range 2 {
			for _, c := range []call{{}, keyed(`"k"`)} {
				if a := s.service.call(ctx, c); a.err != nil || a.body[0] != 3 {
					t.Errorf("the call with the key of the context got %+v", a)
				}
			}
		}
		for _, wrong := range []call{keyed(`"other"`), {keys: []string{`"k"`, `"k"`}}} {
			a := s.service.call(ctx, wrong)
			if !repriseclient.NotSent(a.err) || a.code != invalidArgument || strings.Contains(a.message, "other") {
				t.Errorf("%v: the client got %+v", wrong, a)
			}
		}
		s.wantRuns(s.service, 3)
	})
}

// A request of Connect has no key of an earlier call, and the interceptor does nothing in
// a handler.
func TestConnectRequestIsUsedAgain(t *testing.T) {
	t.Parallel()
	interceptor, err := repriseconnectclient.NewInterceptor(repriseconnectclient.Config{Client: quick()})
	labtest.Must(t, err)
	options := connect.WithInterceptors(interceptor)
	var keys []string
	addr := serveHTTP(t, connect.NewUnaryHandler(create, func(_ context.Context, req *connect.Request[request]) (*connect.Response[response], error) {
		keys = append(keys, req.Header().Get("Idempotency-Key"))
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("no"))
	}, options))
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	client := connect.NewClient[request, response](&http.Client{Transport: transport}, "http://"+addr+create, options)
	req := connect.NewRequest(call{}.order())
	for range 2 {
		if _, err := client.CallUnary(t.Context(), req); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Error(err)
		}
	}
	if len(keys) != 2 || keys[0] == "" || keys[1] == "" || keys[0] == keys[1] {
		t.Errorf("the calls have the keys %q", keys)
	}
}

// Streams, reads and procedures that the service does not protect get no key and no
// retry.
func TestOtherCallsPassThrough(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, c caller) {
		s := c.start(t, setup{
			Config:  protocol.Config{Skip: func(_ context.Context, r *protocol.Request) bool { return r.Path == cancel }},
			handler: always(outcome{code: unavailable, message: "down"}),
		}, callerConfig{Client: quick(), Skip: func(procedure string) bool { return procedure == cancel }})
		for n, procedure := range []string{read, cancel} {
			if a := s.service.call(t.Context(), call{procedure: procedure}); a.code != unavailable || a.message != "down" {
				t.Errorf("%s got %+v", procedure, a)
			}
			s.wantRuns(s.service, int32(n)+1)
		}
		if a := s.stream(t.Context(), call{}); a.err != nil || a.get("idempotency-status") != "" {
			t.Errorf("the stream got %+v", a)
		}
		if len(s.log.ended) != 0 {
			t.Errorf("the observer got %+v", s.log.ended)
		}
	})
}
