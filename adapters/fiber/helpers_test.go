package reprisefiber_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// raceEnabled tells a test whose handler is late on purpose that it cannot run: fasthttp
// lets such a handler race with its server.
var raceEnabled bool

// patience bounds every wait of a test.
const patience = time.Minute

// service is a Fiber app on a real listener, with the middleware over a new store.
type service struct {
	app     *fiber.App
	protect fiber.Handler
	runs    atomic.Int64 // runs of a handler that counts them
	addr    string
}

// options are the differences of a service. The zero value has every default.
type options struct {
	fiber  fiber.Config
	store  store.Store
	engine reprise.Config
	guard  protocol.Config
	scope  reprisefiber.Scope
	on     func(*fiber.App) host // Fiber's own server
}

// host serves an app.
type host struct {
	serve    func(net.Listener) error
	shutdown func(context.Context) error
}

func fibers(app *fiber.App) host { return host{app.Listener, app.ShutdownWithContext} }

// serve serves the routes that are added by route, until the test ends.
func serve(tb testing.TB, o options, route func(*service)) *service {
	tb.Helper()
	if o.store == nil {
		o.store = memstore.New()
	}
	if o.scope == nil {
		o.scope = reprisefiber.Unscoped
	}
	if o.on == nil {
		o.on = fibers
	}
	engine, err := reprise.New(o.store, o.engine)
	if err != nil {
		tb.Fatal(err)
	}
	_, o.guard.Transactional = o.store.(store.Transactor)
	guard, err := protocol.Over(engine, o.guard)
	if err != nil {
		tb.Fatal(err)
	}
	o.fiber.DisableStartupMessage = true
	s := &service{app: fiber.New(o.fiber), protect: reprisefiber.Middleware(guard, o.scope)}
	route(s)
	ln, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s.addr = ln.Addr().String()
	h, ended := o.on(s.app), make(chan error, 1)
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
	})
	return s
}

// handle serves POST /x by h, which is counted, behind the middleware and the handlers
// outside.
func handle(h fiber.Handler, outside ...fiber.Handler) func(*service) {
	return func(s *service) {
		s.app.Post("/x", append(outside, s.protect, s.counted(h))...)
	}
}

func (s *service) counted(h fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		s.runs.Add(1)
		return h(c)
	}
}

// wantRuns checks how often the handler ran.
func (s *service) wantRuns(tb testing.TB, want int64) {
	tb.Helper()
	if got := s.runs.Load(); got != want {
		tb.Errorf("the handler ran %d times, want %d", got, want)
	}
}

// conn is a raw connection of a client.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func (s *service) dial(tb testing.TB) *conn {
	tb.Helper()
	nc, err := new(net.Dialer).DialContext(tb.Context(), "tcp", s.addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		tb.Fatal(err)
	}
	return &conn{nc, bufio.NewReader(nc)}
}

func (c *conn) send(tb testing.TB, raw string) {
	tb.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		tb.Fatal(err)
	}
}

// answer is a response that was read to its end.
type answer struct {
	status  int
	header  http.Header
	body    string
	err     error // of reading the body
	closes  bool  // the connection ends with it
	trailer http.Header
}

// receive reads a response.
func (c *conn) receive(tb testing.TB) answer {
	tb.Helper()
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body), err, resp.Close, resp.Trailer}
}

// request is the text of a POST to /x with a body and field lines.
func request(body string, lines ...string) string {
	lines = append(lines, fmt.Sprintf("Content-Length: %d", len(body)))
	return rawRequest(lines...) + body
}

func rawRequest(lines ...string) string {
	return "POST /x HTTP/1.1\r\nHost: test\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// key is the field line of a key.
func key(name string) string { return "Idempotency-Key: " + name }

// do sends one request on a new connection.
func (s *service) do(tb testing.TB, raw string) answer {
	tb.Helper()
	c := s.dial(tb)
	c.send(tb, raw)
	return c.receive(tb)
}

// wantReplay sends a request twice and checks that the second response is the first,
// marked.
func (s *service) wantReplay(tb testing.TB, raw string) (first answer) {
	tb.Helper()
	first, second := s.do(tb, raw), s.do(tb, raw)
	if first.header.Get(replayed) != "" || second.header.Get(replayed) != "true" {
		tb.Errorf("marks are %q and %q, want none and true", first.header.Get(replayed), second.header.Get(replayed))
	}
	if first.status != second.status || first.body != second.body || first.err != nil || second.err != nil {
		tb.Errorf("first %d %.100q %v, replay %d %.100q %v", first.status, first.body, first.err, second.status, second.body, second.err)
	}
	for _, name := range []string{"Content-Type", "Content-Encoding", "Location", "Allow", "X-Made"} {
		if a, b := first.header.Values(name), second.header.Values(name); fmt.Sprint(a) != fmt.Sprint(b) {
			tb.Errorf("%s is %q first and %q in the replay", name, a, b)
		}
	}
	if a, b := first.trailer.Values("X-Made"), second.trailer.Values("X-Made"); !slices.Equal(a, b) {
		tb.Errorf("the trailer X-Made is %q first and %q in the replay", a, b)
	}
	return first
}

const replayed = "Idempotent-Replayed"

// code returns the code of a problem.
func (a *answer) code() string {
	_, rest, _ := strings.Cut(a.body, `"code":"`)
	code, _, _ := strings.Cut(rest, `"`)
	return code
}

func (a *answer) want(tb testing.TB, status int, code string) {
	tb.Helper()
	if a.status != status || a.code() != code {
		tb.Errorf("got %d %.300s, want %d %q", a.status, a.body, status, code)
	}
}
