package proxy_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/proxy"
)

// bundle is a proxy on a socket in front of an upstream on another.
type bundle struct {
	t        *testing.T
	upstream *httptest.Server
	handler  *proxy.Handler
	url      string
	client   *http.Client
	access   *lines
	log      *lines
	runs     atomic.Int64 // requests that reached the upstream
	serve    atomic.Pointer[http.HandlerFunc]
}

// setup starts both. UPSTREAM in the configuration is the address of the upstream.
func setup(t *testing.T, config string) *bundle {
	t.Helper()
	return setupOver(t, memstore.New(), reprise.Config{}, config)
}

func setupOver(t *testing.T, st store.Store, engine reprise.Config, config string) *bundle {
	t.Helper()
	b := &bundle{t: t, access: new(lines), log: new(lines), client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	engine.Log, engine.MaxRun = slog.New(slog.NewTextHandler(b.log, nil)), time.Minute
	b.upstream = start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		run := b.runs.Add(1)
		if f := b.serve.Load(); f != nil {
			(*f)(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("X-Run", string(rune('0'+run)))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(append(allBytes(), body...))
	}))
	var err error
	b.handler, err = proxy.New(st, b.config(config), proxy.Options{
		Engine:    engine,
		AccessLog: slog.New(slog.NewJSONHandler(b.access, nil)),
	})
	must(t, err)
	t.Cleanup(func() {
		if err := b.handler.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	b.url = start(t, b.handler).URL
	return b
}

// start starts a server of HTTP/1 and HTTP/2.
func start(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // handlers panic
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (b *bundle) config(text string) proxy.Config {
	b.t.Helper()
	c, err := proxy.Parse([]byte(strings.ReplaceAll(text, "UPSTREAM", strings.TrimPrefix(b.upstream.URL, "http://"))))
	must(b.t, err)
	return c
}

// handle replaces the handler of the upstream.
func (b *bundle) handle(f http.HandlerFunc) { b.serve.Store(&f) }

type answer struct {
	status  int
	header  http.Header
	body    []byte
	trailer http.Header
	err     error // of the connection
}

func (a *answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

// post sends a request with a key.
func (b *bundle) post(path, key string, change ...func(*http.Request)) *answer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+path, strings.NewReader("pay"))
	must(b.t, err)
	req.Header.Set("Authorization", "Bearer alice")
	if key != "" {
		req.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	for _, f := range change {
		f(req)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return &answer{err: err}
	}
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode, header: resp.Header}
	a.body, a.err = io.ReadAll(resp.Body)
	a.trailer = resp.Trailer
	return a
}

func (b *bundle) wantRuns(want int64) {
	b.t.Helper()
	if got := b.runs.Load(); got != want {
		b.t.Errorf("%d requests reached the upstream, want %d", got, want)
	}
}

func allBytes() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

// lines is a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
