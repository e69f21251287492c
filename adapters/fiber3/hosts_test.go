package reprisefiber3_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
	"github.com/gofiber/fiber/v3/middleware/timeout"
	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/adapters/internal/fasthttp/harness"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// hosts are the ways in which an app is served.
var hosts = map[string]func(*fiber.App) harness.Host{
	"Fiber's server": fibers,
	"fasthttp": func(app *fiber.App) harness.Host {
		server := &fasthttp.Server{Handler: app.Handler()}
		return harness.Host{Serve: server.Serve, Shutdown: server.ShutdownWithContext}
	},
	"net/http": func(app *fiber.App) harness.Host { return harness.HTTP(adaptor.FiberApp(app)) },
	"net/http, bounded": func(app *fiber.App) harness.Host {
		return harness.HTTP(http.TimeoutHandler(adaptor.FiberApp(app), harness.Patience, "too late"))
	},
}

// stores are the two kinds of them: see serveOn.
var stores = map[string]func() store.Store{
	"plain":         func() store.Store { return memstore.New() },
	"transactional": func() store.Store { return adaptertest.Transacting(memstore.New()) },
}

// A request is the same until its response is sent: a handler that clears the values of
// its request, or outlives a deadline of a layer that waits for it, has one run on every
// host.
func TestRunsAreFoundAgainOnEveryHost(t *testing.T) {
	t.Parallel()
	made := func(c fiber.Ctx) error { return c.Status(fiber.StatusCreated).SendString("made") }
	for name, tt := range map[string]struct {
		outside []any
		h       fiber.Handler
	}{
		"another value in the place of the run": {h: func(c fiber.Ctx) error {
			c.RequestCtx().SetUserValue(store.ContextKey, "another")
			return made(c)
		}},
		"values that the handler clears, and a deadline that it outlives": {outside: []any{expiring}, h: func(c fiber.Ctx) error {
			<-fiber.Locals[context.Context](c, "deadline").Done()
			c.RequestCtx().ResetUserValues()
			return made(c)
		}},
		"a context that the handler keeps from the pool": {h: func(c fiber.Ctx) error {
			c.Abandon() // as the server-sent events of newer releases
			return made(c)
		}},
	} {
		for on, host := range hosts {
			for kind, open := range stores {
				t.Run(strings.Join([]string{name, on, kind}, "/"), func(t *testing.T) {
					t.Parallel()
					s := serveOn(t, host, fiber.New(), open(), protocol.Config{}, chain(tt.outside, nil, tt.h))
					for _, replayed := range []bool{false, true, true} {
						if got := s.Post("k"); got.Status != fiber.StatusCreated || got.Body != "made" || got.Replayed != replayed || got.Err != nil {
							t.Errorf("got %+v, want a replay: %t", got, replayed)
						}
					}
					s.Ran(1)
				})
			}
		}
	}
}

// expiring bounds the context and waits for the rest of the chain.
func expiring(c fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(c.Context(), short)
	defer cancel()
	c.SetContext(ctx)
	c.Locals("deadline", ctx)
	return c.Next()
}

// A timeout around the whole app answers early, and the retry gets the response of the
// handler that went on.
func TestTimeoutsAroundTheAppLoseNoRun(t *testing.T) {
	t.Parallel()
	for kind, open := range stores {
		started, proceed := make(chan struct{}, 2), make(chan struct{})
		s := serveOn(t, func(app *fiber.App) harness.Host {
			whole := adaptor.FiberApp(app)
			bounded := http.TimeoutHandler(whole, short, "too late")
			return harness.HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Late") != "" {
					body, _ := io.ReadAll(r.Body) // which the server closes when the timeout answers
					r.Body = io.NopCloser(bytes.NewReader(body))
					bounded.ServeHTTP(w, r)
					return
				}
				whole(w, r)
			}))
		}, fiber.New(), open(), protocol.Config{}, chain([]any{expiring}, nil, func(c fiber.Ctx) error {
			started <- struct{}{}
			<-proceed
			return c.Status(fiber.StatusCreated).SendString("made")
		}))
		if first := s.Post("k", "X-Late: yes"); first.Status != http.StatusServiceUnavailable || first.Body != "too late" {
			t.Errorf("%s: the client of the late handler got %+v", kind, first)
		}
		<-started
		close(proceed)
		if again := s.Retry("k"); again.Status != fiber.StatusCreated || again.Body != "made" || !again.Replayed {
			t.Errorf("%s: the retry got %+v", kind, again)
		}
		s.Ran(1)
	}
}

// adaptor.FiberApp neither clears the response of a timeout nor a hijacking from the
// contexts that it uses again: they are not those of the next request.
func TestContextsThatAHostUsesAgainStartAnew(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*fasthttp.RequestCtx){
		"the response of a timeout": func(ctx *fasthttp.RequestCtx) { ctx.TimeoutError("too late") },
		"a hijacking":               func(ctx *fasthttp.RequestCtx) { ctx.Hijack(func(net.Conn) {}) },
	} {
		s := serveOn(t, hosts["net/http"], fiber.New(), memstore.New(), protocol.Config{}, chain([]any{func(c fiber.Ctx) error {
			before(c.RequestCtx())
			return c.Next()
		}}, nil, func(c fiber.Ctx) error { return c.Status(fiber.StatusCreated).SendString("made") }))
		for _, replayed := range []bool{false, true} {
			if got := s.Post("k"); got.Status != fiber.StatusCreated || got.Body != "made" || got.Replayed != replayed {
				t.Errorf("%s: got %+v", name, got)
			}
		}
		s.Ran(1)
	}
}

// adaptor.FiberApp forgets a stream when its client leaves. It is recorded anyway.
func TestR23StreamsThatTheirHostForgetsAreRecorded(t *testing.T) {
	t.Parallel()
	left, completed := make(chan struct{}), make(chan struct{}, 1)
	observer := reprise.ObserverFunc(func(_ context.Context, e reprise.Event) {
		if e.Name() == "completed" {
			completed <- struct{}{}
		}
	})
	policy := protocol.Config{Engine: reprise.Config{Observer: observer}}
	s := serveOn(t, hosts["net/http"], fiber.New(), memstore.New(), policy, chain(nil, nil, func(c fiber.Ctx) error {
		return c.SendStreamWriter(func(w *bufio.Writer) {
			_, _ = w.WriteString("first")
			_ = w.Flush()
			<-left
			for range 100 {
				_, _ = w.WriteString(strings.Repeat("x", 5_000))
				_ = w.Flush()
			}
		})
	}))
	conn := s.Dial(harness.Request("body", harness.Key("k")))
	if line, err := conn.R.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 200") {
		t.Fatalf("got %q, %v", line, err)
	}
	conn.Leave()
	close(left)
	for deadline, ended := time.Now().Add(time.Minute), false; !ended; { // no request uses the context again
		runtime.GC()
		select {
		case <-completed:
			ended = true
		default:
			if time.Now().After(deadline) {
				t.Fatal("the run never ends")
			}
		}
	}
	if again := s.Post("k"); !again.Replayed || len(again.Body) != len("first")+500_000 {
		t.Errorf("the retry got %d, %d bytes, replayed: %t", again.Status, len(again.Body), again.Replayed)
	}
	s.Ran(1)
}

// A host may send the media type of fasthttp with an empty body. The replay has it then.
func TestR16ReplayHasTheMediaTypeThatTheHostSends(t *testing.T) {
	t.Parallel()
	for on, host := range hosts {
		s := serveOn(t, host, fiber.New(), memstore.New(), protocol.Config{}, chain(nil, nil, func(fiber.Ctx) error { return nil }))
		first, again := s.Post("k"), s.Post("k")
		if first.Header.Get("Content-Type") != again.Header.Get("Content-Type") || !again.Replayed {
			t.Errorf("%s: got %v, and then %v", on, first.Header, again.Header)
		}
	}
}

// A timeout inside whose handler goes on answers for it: the response that fasthttp sends
// in place of the handler's is kept as any other.
func TestR33dTheResponseOfATimeoutInsideIsTheResponse(t *testing.T) {
	t.Parallel()
	harness.SkipRaces(t)
	for name, tt := range map[string]struct {
		config timeout.Config
		preset reprise.Preset
		status int
		body   string
		runs   int64
	}{
		"a 408 that releases":   {preset: reprise.Recoverable, status: fiber.StatusRequestTimeout, body: "Request Timeout", runs: 2},
		"a 408 that is kept":    {preset: reprise.AtMostOnce, status: fiber.StatusRequestTimeout, body: "Request Timeout", runs: 1},
		"a response of its own": {config: timeout.Config{OnTimeout: accepted}, preset: reprise.Recoverable, status: fiber.StatusAccepted, body: "later", runs: 1},
	} {
		for kind, open := range stores {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				tt.config.Timeout = short
				proceed, ended := make(chan struct{}), make(chan struct{}, 2)
				s := serveOn(t, fibers, fiber.New(), open(), protocol.Config{Preset: tt.preset},
					chain([]any{func(c fiber.Ctx) error { c.Set("X-Outer", "1"); return c.Next() }},
						[]any{timeout.New(fiber.Ctx.Next, tt.config)}, func(c fiber.Ctx) error {
							defer func() { ended <- struct{}{} }()
							<-proceed
							return c.Status(fiber.StatusCreated).SendString("done")
						}))
				for _, replayed := range []bool{false, tt.runs == 1} {
					if got := s.Post("k"); got.Status != tt.status || got.Body != tt.body || got.Replayed != replayed {
						t.Errorf("got %+v, want a replay: %t", got, replayed)
					}
				}
				close(proceed)
				for range tt.runs {
					<-ended
				}
				s.Ran(tt.runs)
			})
		}
	}
}

func accepted(c fiber.Ctx) error {
	return c.Status(fiber.StatusAccepted).SendString("later")
}

// short is the timeout of a handler that waits for longer than that.
const short = 20 * time.Millisecond
