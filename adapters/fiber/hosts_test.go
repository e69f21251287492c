package reprisefiber_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/timeout"
	"github.com/valyala/fasthttp"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// hosts are the ways in which an app is served. The adaptor of newer releases makes a
// request context by Init, other hosts use theirs again without it.
var hosts = map[string]func(*fiber.App) host{
	"Fiber's server": fibers,
	"fasthttp": func(app *fiber.App) host {
		server := &fasthttp.Server{Handler: app.Handler()}
		return host{server.Serve, server.ShutdownWithContext}
	},
	"net/http": func(app *fiber.App) host {
		return overNetHTTP(app, func(req *fasthttp.Request) *fasthttp.RequestCtx {
			ctx := new(fasthttp.RequestCtx)
			ctx.Init(req, nil, nil)
			return ctx
		})
	},
}

// reusing is a host that gives one context to all requests.
func reusing(app *fiber.App) host {
	ctx := new(fasthttp.RequestCtx)
	return overNetHTTP(app, func(req *fasthttp.Request) *fasthttp.RequestCtx {
		ctx.ResetUserValues()
		ctx.Response.Reset()
		req.CopyTo(&ctx.Request)
		return ctx
	})
}

func overNetHTTP(app *fiber.App, contextOf func(*fasthttp.Request) *fasthttp.RequestCtx) host {
	serve, mu := app.Handler(), new(sync.Mutex)
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		req := new(fasthttp.Request)
		req.Header.SetMethod(r.Method)
		req.SetRequestURI(r.RequestURI)
		_, _ = io.Copy(req.BodyWriter(), r.Body)
		for name := range r.Header {
			req.Header.Set(name, r.Header.Get(name))
		}
		ctx := contextOf(req)
		serve(ctx)
		ctx.Response.Header.VisitAll(func(name, value []byte) { w.Header().Add(string(name), string(value)) })
		w.WriteHeader(ctx.Response.StatusCode())
		_, _ = w.Write(ctx.Response.Body())
	})}
	return host{server.Serve, server.Shutdown}
}

// stores are the two kinds of them: see serve.
var stores = map[string]func() store.Store{
	"plain":         func() store.Store { return memstore.New() },
	"transactional": func() store.Store { return adaptertest.Transacting(memstore.New()) },
}

const short = 20 * time.Millisecond

// A request is the same until its response is sent: a handler that clears the values of
// its request, or outlives a deadline of a layer that waits for it, has one run on every
// host.
func TestRunsAreFoundAgainOnEveryHost(t *testing.T) {
	t.Parallel()
	made := func(c *fiber.Ctx) error { return c.Status(fiber.StatusCreated).SendString("made") }
	bounded := timeout.NewWithContext(func(c *fiber.Ctx) error {
		c.Locals("deadline", c.UserContext())
		return c.Next()
	}, short)
	late := func(c *fiber.Ctx) error {
		<-c.Locals("deadline").(context.Context).Done()
		return made(c)
	}
	for name, tt := range map[string]struct {
		outside []fiber.Handler
		h       fiber.Handler
	}{
		"plain": {h: made},
		"values that the handler clears": {h: func(c *fiber.Ctx) error {
			c.Context().ResetUserValues()
			return made(c)
		}},
		"another value in the place of the run": {h: func(c *fiber.Ctx) error {
			c.Context().SetUserValue(store.ContextKey, "another")
			return made(c)
		}},
		"a deadline that the handler outlives": {outside: []fiber.Handler{bounded}, h: late},
		"both": {outside: []fiber.Handler{bounded}, h: func(c *fiber.Ctx) error {
			defer c.Context().ResetUserValues()
			return late(c)
		}},
		"a timeout outside, in time": {outside: []fiber.Handler{timeout.New((*fiber.Ctx).Next, patience)}, h: made}, //nolint:staticcheck // as deprecated as it is
		"a timeout inside, in time":  {h: timeout.New(made, patience)},                                              //nolint:staticcheck // as above
	} {
		for on, host := range hosts {
			for kind, open := range stores {
				t.Run(strings.Join([]string{name, on, kind}, "/"), func(t *testing.T) {
					t.Parallel()
					s := serve(t, options{on: host, store: open()}, handle(tt.h, tt.outside...))
					if first := s.wantReplay(t, request("body", key("k"))); first.status != fiber.StatusCreated || first.body != "made" {
						t.Errorf("got %d %s", first.status, first.body)
					}
					s.wantReplay(t, request("body", key("other")))
					s.wantRuns(t, 2)
				})
			}
		}
	}
}

// Test makes a connection for each request.
func TestRunsAreFoundAgainInTest(t *testing.T) {
	t.Parallel()
	guard, err := protocol.New(memstore.New(), protocol.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close(t.Context())
	app, runs := fiber.New(), 0
	app.Post("/x", reprisefiber.Middleware(guard, reprisefiber.Unscoped), func(c *fiber.Ctx) error {
		runs++
		c.Context().ResetUserValues()
		return c.SendStatus(fiber.StatusCreated)
	})
	for _, want := range []string{"", "true"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://test/x", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k")
		res, err := app.Test(r, -1)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != fiber.StatusCreated || res.Header.Get(replayed) != want {
			t.Errorf("got %d, %v", res.StatusCode, res.Header)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

// A chain that outlives the timeout of Fiber v2 finds another request in its context. It
// has no response to keep, and leaves that of the other request as it is.
func TestChainsWhoseContextServesAnotherRequestAreCut(t *testing.T) {
	t.Parallel()
	if raceEnabled {
		t.Skip("Fiber's timeout races with any handler that outlives it")
	}
	for on, host := range map[string]func(*fiber.App) host{"Fiber's server": fibers, "fasthttp": hosts["fasthttp"], "a context for all": reusing} {
		for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
			proceed, ended, within := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var first sync.Once
			s := serve(t, options{on: host, guard: protocol.Config{Preset: preset}}, func(s *service) {
				s.app.Get("/y", func(c *fiber.Ctx) error { // the other request
					close(within)
					<-ended
					return c.SendString("of another")
				})
				outside := timeout.New(func(c *fiber.Ctx) error { //nolint:staticcheck // as deprecated as it is
					defer first.Do(func() { close(ended) })
					return c.Next()
				}, short)
				s.app.Post("/x", outside, s.protect, s.counted(func(c *fiber.Ctx) error {
					if s.runs.Load() == 1 {
						<-proceed
						return nil
					}
					return c.SendString("in time")
				}))
			})
			conn := s.dial(t)
			conn.send(t, request("", key("k")))
			if got := conn.receive(t); got.status != fiber.StatusRequestTimeout {
				t.Errorf("%s: the client of the late handler gets %d %s", on, got.status, got.body)
			}
			conn.send(t, "GET /y HTTP/1.1\r\nHost: test\r\n\r\n")
			<-within
			close(proceed)
			if other := conn.receive(t); other.status != fiber.StatusOK || other.body != "of another" {
				t.Errorf("%s: the other request gets %d %s", on, other.status, other.body)
			}
			again := s.do(t, request("", key("k")))
			if preset == reprise.AtMostOnce {
				again.want(t, 409, "result-unavailable")
			} else if again.body != "in time" {
				t.Errorf("%s: the retry gets %d %s", on, again.status, again.body)
			}
		}
	}
}
