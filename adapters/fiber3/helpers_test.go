package reprisefiber3_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	reprisefiber3 "github.com/reprise-go/reprise/adapters/fiber3"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// raceEnabled tells the tests of late handlers that they cannot run: Fiber's timeout
// writes the response beside the handler.
var raceEnabled bool

// patience limits how long a test waits for an event.
const patience = time.Minute

// host serves an app.
type host struct {
	serve    func(net.Listener) error
	shutdown func(context.Context) error
}

// fibers is Fiber's own server.
func fibers(app *fiber.App) host {
	return host{func(ln net.Listener) error {
		return app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true})
	}, app.ShutdownWithContext}
}

// service is a Fiber app on a real listener, over a new memory store.
type service struct {
	tb   testing.TB
	app  *fiber.App
	addr string
	runs atomic.Int64
}

// serve serves the app until the test ends. route adds routes to it, with the middleware.
func serve(tb testing.TB, app *fiber.App, engine reprise.Config, policy protocol.Config, route func(s *service, protect fiber.Handler)) *service {
	tb.Helper()
	policy.Engine = engine
	return serveOn(tb, fibers, app, memstore.New(), policy, route)
}

// serveOn is serve on a host, over a store, whose transactions the policy uses.
func serveOn(tb testing.TB, on func(*fiber.App) host, app *fiber.App, st store.Store, policy protocol.Config, route func(s *service, protect fiber.Handler)) *service {
	tb.Helper()
	_, policy.Transactional = st.(store.Transactor)
	guard, err := protocol.New(st, policy)
	if err != nil {
		tb.Fatal(err)
	}
	ln, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &service{tb: tb, app: app, addr: ln.Addr().String()}
	route(s, middlewareOf(guard))
	h, ended := on(app), make(chan error, 1)
	go func() { ended <- h.serve(ln) }()
	tb.Cleanup(func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), patience)
		defer cancel()
		if err := h.shutdown(closing); err != nil {
			tb.Error(err)
		}
		if err := <-ended; err != nil && !errors.Is(err, http.ErrServerClosed) {
			tb.Error(err)
		}
		if err := guard.Close(closing); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// serveOne serves one handler, which is counted, behind the layers outside and the
// middleware, and in front of it the layers inside.
func serveOne(tb testing.TB, preset reprise.Preset, outside, inside []any, h fiber.Handler) *service {
	tb.Helper()
	return serve(tb, fiber.New(), reprise.Config{}, protocol.Config{Preset: preset}, chain(outside, inside, h))
}

// chain routes to a handler, which is counted, as serveOne does.
func chain(outside, inside []any, h fiber.Handler) func(*service, fiber.Handler) {
	return func(s *service, protect fiber.Handler) {
		all := append(append(append([]any{}, outside...), protect), inside...)
		all = append(all, func(c fiber.Ctx) error {
			s.runs.Add(1)
			return h(c)
		})
		s.app.Post("/x", all[0], all[1:]...)
	}
}

// middlewareOf is the middleware over a guard.
func middlewareOf(guard *protocol.Guard) fiber.Handler {
	return reprisefiber3.Middleware(guard, reprisefiber3.Unscoped)
}

// response is a response that was read to its end.
type response struct {
	status   int
	header   http.Header
	body     string
	replayed bool
	err      error // no response came, or not all of it
}

// post sends a request with a key on a new connection.
func (s *service) post(key string, fields ...string) response {
	s.tb.Helper()
	r, err := http.NewRequestWithContext(s.tb.Context(), http.MethodPost, "http://"+s.addr+"/x", strings.NewReader("body"))
	if err != nil {
		s.tb.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", key)
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	res, err := client.Do(r)
	if err != nil {
		return response{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return response{res.StatusCode, res.Header, string(body), res.Header.Get("Idempotent-Replayed") == "true", err}
}

// retry is post, again until the first request has ended.
func (s *service) retry(key string) response {
	s.tb.Helper()
	for expired := time.Now().Add(patience); ; {
		runtime.GC() // which ends forgotten streams
		if r := s.post(key); !strings.Contains(r.body, "in-progress") || time.Now().After(expired) {
			return r
		}
	}
}

// talk writes to a new connection and returns the bytes that come back until it is
// closed.
func (s *service) talk(text string) string {
	s.tb.Helper()
	conn, err := new(net.Dialer).DialContext(s.tb.Context(), "tcp", s.addr)
	if err != nil {
		s.tb.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, text); err != nil {
		s.tb.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		s.tb.Fatalf("after %q: %v", got, err)
	}
	return string(got)
}

func (s *service) ran(n int64) {
	s.tb.Helper()
	if got := s.runs.Load(); got != n {
		s.tb.Errorf("the handler ran %d times, want %d", got, n)
	}
}
