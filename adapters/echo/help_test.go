package repriseecho

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// patience is how long a test waits for what has to come.
const patience = 10 * time.Second

// bench is an Echo on a real listener, and an engine of reprise over a memory store.
// Routes are added before the first request.
type bench struct {
	*echo.Echo

	t       *testing.T
	engine  *reprise.Engine
	guarded echo.MiddlewareFunc // the middleware of a guard with the policy of the bench
	runs    atomic.Int64        // of the handlers that count themselves
	serve   func() (url string)
}

func setup(t *testing.T, policy protocol.Config) *bench {
	t.Helper()
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	b := &bench{Echo: echo.New(), t: t, engine: engine}
	b.Logger.SetOutput(io.Discard)
	b.guarded = b.middleware(policy)
	b.serve = sync.OnceValue(func() string {
		ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: b.Echo, ReadHeaderTimeout: patience}
		server.ErrorLog = quiet
		go func() { _ = server.Serve(ln) }()
		t.Cleanup(func() { _ = server.Close() })
		return "http://" + ln.Addr().String()
	})
	return b
}

// middleware returns the middleware of another guard over the same store.
func (b *bench) middleware(policy protocol.Config) echo.MiddlewareFunc {
	b.t.Helper()
	guard, err := protocol.Over(b.engine, policy)
	if err != nil {
		b.t.Fatal(err)
	}
	return Middleware(guard, Unscoped)
}

// counted counts the runs of a handler.
func (b *bench) counted(h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		b.runs.Add(1)
		return h(c)
	}
}

// ran demands that the counted handlers ran n times so far.
func (b *bench) ran(n int64) {
	b.t.Helper()
	if got := b.runs.Load(); got != n {
		b.t.Errorf("handlers ran %d times, want %d", got, n)
	}
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

// request makes a request; fields are names and values in turn.
func (b *bench) request(method, path, body string, fields ...string) *http.Request {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.serve()+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

// client follows no redirection and decodes no content.
var client = &http.Client{
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 4},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       patience,
}

// try sends a request. The error says that the answer did not come, or not in full.
func (b *bench) try(r *http.Request) (answer, error) {
	res, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(body)}, err
}

func (b *bench) send(method, path string, fields ...string) answer {
	b.t.Helper()
	a, err := b.try(b.request(method, path, "body", fields...))
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// twice sends a request with a key of its own and then its retry, and demands that the
// second answer is the replay of the first.
func (b *bench) twice(method, path string, fields ...string) (first, again answer) {
	b.t.Helper()
	fields = append(slices.Clip(fields), "Idempotency-Key", rand.Text())
	first, again = b.send(method, path, fields...), b.send(method, path, fields...)
	if first.replayed() || !again.replayed() {
		b.t.Fatalf("%s %s: replayed is %v and then %v, want false and true: %+v", method, path, first.replayed(), again.replayed(), again)
	}
	if first.status != again.status || first.body != again.body {
		b.t.Errorf("%s %s: the replay is %d %.200q, and the first answer was %d %.200q", method, path, again.status, again.body, first.status, first.body)
	}
	if got, want := kept(again), kept(first); !maps.EqualFunc(got, want, slices.Equal) {
		b.t.Errorf("%s %s: the replay has the fields %v, and the first answer had %v", method, path, got, want)
	}
	return first, again
}

// afresh sends a request with a key of its own and then its retry, and demands that the
// second one ran again.
func (b *bench) afresh(method, path string) (first, again answer) {
	b.t.Helper()
	key := rand.Text()
	first, again = b.send(method, path, "Idempotency-Key", key), b.send(method, path, "Idempotency-Key", key)
	if first.replayed() || again.replayed() {
		b.t.Errorf("%s %s: replayed is %v and then %v, want false twice: %+v", method, path, first.replayed(), again.replayed(), again)
	}
	return first, again
}

// kept returns the fields that a replay has in common with its first answer.
func kept(a answer) http.Header {
	h := a.header.Clone()
	for _, own := range []string{"Date", "Content-Length", "Idempotent-Replayed", "X-Outer"} {
		h.Del(own)
	}
	return h
}

// eventually polls until done reports true.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v", patience)
		}
	}
}

// created is a handler that most tests need.
func created(c echo.Context) error { return c.JSON(http.StatusCreated, echo.Map{"id": 7}) }

const createdBody = `{"id":7}` + "\n"

// pattern returns n bytes with every value in them.
func pattern(n int) []byte {
	return bytes.Repeat([]byte("0123456789abcdef\x00\xff\r\n"), n/20+1)[:n]
}

// quiet takes what net/http logs about handlers that panic.
var quiet = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
