package console_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/console"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// stores are the stores below the console.
var stores = map[string]func(t *testing.T) store.Store{
	"redis": func(t *testing.T) store.Store {
		t.Helper()
		client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
		return labtest.RedisStore(t, client, repriseredis.Config{Prefix: labtest.RedisPrefix()})
	},
	"postgres": func(t *testing.T) store.Store {
		t.Helper()
		return labtest.SetupPostgres(t, servers.SharedPostgres(t)).Leased(t)
	},
}

// service is a process that takes orders, with its console at /idempotency/.
type service struct {
	*testing.T

	url     string
	engine  *reprise.Engine
	runs    atomic.Int64
	writes  atomic.Bool
	started chan struct{} // receives when a handler has started
	hold    chan struct{} // while it is open, handlers do not end
	free    func()
	answer  string // of the handler
	status  atomic.Int64
	about   atomic.Pointer[string] // describes the requests
	unsure  atomic.Bool            // handlers do not know their outcome
	log     *logged
}

// client is the service's clients.
var client = &http.Client{Timeout: time.Minute}

// logged is a log that many goroutines write.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func serve(t *testing.T, store store.Store) *service {
	t.Helper()
	s := &service{T: t, started: make(chan struct{}, 16), hold: make(chan struct{}), answer: `{"by":"handler"}`, log: &logged{}}
	s.free = sync.OnceFunc(func() { close(s.hold) })
	s.writes.Store(true)
	s.about.Store(new(string))
	s.status.Store(http.StatusOK)
	events := console.NewEvents()
	var err error
	if s.engine, err = reprise.New(store, reprise.Config{Lease: time.Second, Observer: events}); err != nil {
		t.Fatal(err)
	}
	guard, err := protocol.Over(s.engine, protocol.Config{
		Name: "orders", Preset: reprise.AtMostOnce,
		Describe: func(context.Context, *protocol.Request) string { return *s.about.Load() },
	})
	if err != nil {
		t.Fatal(err)
	}
	access := func(*http.Request) (string, console.Permission) {
		may := console.Look | console.Reveal
		if s.writes.Load() {
			may |= console.Resolve
		}
		return "ada", may
	}
	pages, err := console.Handler([]console.Store{{Name: "main", Store: store}}, access, console.Config{
		Engines: []console.Engine{{Name: "main", Engine: s.engine}},
		Guards:  []*protocol.Guard{guard},
		Events:  events,
		Log:     slog.New(slog.NewTextHandler(s.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	order := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.runs.Add(1)
		if s.unsure.Load() {
			protocol.Unknown(r.Context(), "the bank did not answer within 10 s")
			w.WriteHeader(http.StatusGatewayTimeout)
			return
		}
		s.started <- struct{}{}
		<-s.hold
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(s.status.Load()))
		_, _ = io.WriteString(w, s.answer)
	})
	mux := http.NewServeMux()
	mux.Handle("POST /orders", reprisehttp.Middleware(guard, tenant)(order))
	mux.Handle("/idempotency/", http.StripPrefix("/idempotency", pages))
	server := httptest.NewServer(mux)
	s.url = server.URL
	t.Cleanup(func() {
		s.free()
		server.CloseClientConnections()
		server.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		_ = s.engine.Close(ctx)
	})
	return s
}

func tenant(*http.Request) (string, error) { return "shop", nil }

func (s *service) console(path string) string { return s.url + "/idempotency/" + path }

// order sends an order, as the client that retries does.
func (s *service) order(ctx context.Context, key string) (status int, header http.Header, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/orders", strings.NewReader(`{"item":17}`))
	if err != nil {
		return 0, nil, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", `"`+key+`"`)
	got, err := client.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	return got.StatusCode, got.Header, string(b), err
}

// stuck leaves an operation whose process stopped while it ran, and returns its ID.
func stuck(t *testing.T, st store.Store, key string) store.ID {
	t.Helper()
	dying := serve(t, st)
	client, cut := context.WithCancel(t.Context())
	defer cut()
	go func() { _, _, _, _ = dying.order(client, key) }()
	<-dying.started
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_ = dying.engine.Close(gone) // it stops at once, and stops renewing
	id := store.DeriveID("shop", "", key)
	inspector, _ := store.As[store.Inspector](st)
	await(t, "the record to lapse", func() (string, bool) {
		record, err := inspector.Inspect(t.Context(), id)
		return fmt.Sprintf("%+v, %v", record, err), err == nil && record.State == store.StateLapsed
	})
	return id
}

// unknown leaves a payment whose handler did not learn whether the bank took it.
func (s *service) unknown(key, about string) store.ID {
	s.Helper()
	s.about.Store(&about)
	s.unsure.Store(true)
	s.wants(key, http.StatusGatewayTimeout)
	s.unsure.Store(false)
	s.runs.Add(-1)
	return store.DeriveID("shop", "", key)
}

// await polls until a condition holds.
func await(t *testing.T, what string, holds func() (string, bool)) {
	t.Helper()
	last := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		said, ok := holds()
		if ok {
			return
		}
		last = said
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // between two looks
	}
	t.Fatalf("waited for %s: %s", what, last)
}
