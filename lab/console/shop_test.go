package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/console"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	repriseotel "github.com/reprise-go/reprise/otel"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// shop is a service that pays through a bank, keeps its records in Redis, has metrics,
// and the console at /idempotency/.
type shop struct {
	*httptest.Server
	*testing.T

	prefix   string
	client   *redis.Client
	store    *repriseredis.Store
	registry *prometheus.Registry
	stops    func()
}

// openShop opens a shop over the records with a prefix.
func openShop(t *testing.T, url, prefix, bank string, audit io.Writer) *shop {
	t.Helper()
	must := func(err error) {
		t.Helper()
		labtest.Must(t, err)
	}
	s := &shop{T: t, prefix: prefix, client: labtest.RedisClient(t, strings.TrimPrefix(url, "redis://")), registry: prometheus.NewRegistry()}
	s.store = labtest.RedisStore(t, s.client, repriseredis.Config{Prefix: prefix})
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(s.registry))
	must(err)
	telemetry, err := repriseotel.New(repriseotel.Config{MeterProvider: metric.NewMeterProvider(metric.WithReader(exporter))})
	must(err)
	events := console.NewEvents()
	engine, err := reprise.New(telemetry.Store(s.store), reprise.Config{Observer: reprise.Observers(telemetry, events)})
	must(err)
	_, err = telemetry.Watch("shop", engine)
	must(err)
	guard, err := protocol.Over(engine, protocol.Config{
		Label: "payments", Required: true, Preset: reprise.AtMostOnce,
		Describe: func(_ context.Context, r *protocol.Request) string { return r.Method + " " + r.Path },
	})
	must(err)
	pages, err := console.Handler([]console.Store{{Name: "main", Store: s.store}}, operator, console.Config{
		Engines: []console.Engine{{Name: "main", Engine: engine}}, Guards: []*protocol.Guard{guard}, Events: events,
		Log: slog.New(slog.NewJSONHandler(audit, nil)),
	})
	must(err)
	mux := http.NewServeMux()
	mux.Handle("POST /payments", reprisehttp.Middleware(guard, customer)(pay(bank)))
	mux.Handle("/idempotency/", http.StripPrefix("/idempotency", pages))
	s.Server = httptest.NewServer(mux)
	s.stops = sync.OnceFunc(func() {
		s.CloseClientConnections()
		s.Close()
		_ = engine.Close(context.WithoutCancel(t.Context()))
	})
	t.Cleanup(s.stops)
	return s
}

// operator names the operator that the company's proxy has authenticated.
func operator(r *http.Request) (string, console.Permission) {
	return r.Header.Get("X-Forwarded-User"), console.Look | console.Reveal | console.Resolve
}

// customer names the owner of a key.
func customer(r *http.Request) (string, error) {
	user, _, ok := r.BasicAuth()
	if !ok {
		return "", errors.New("no credentials")
	}
	return user, nil
}

// console returns the address of a page of the console.
func (s *shop) console(path string) string { return s.URL + "/idempotency/" + path }

// metrics returns one scrape.
func (s *shop) metrics() map[string]*dto.MetricFamily {
	s.Helper()
	families, err := s.registry.Gather()
	labtest.Must(s, err)
	named := make(map[string]*dto.MetricFamily)
	for _, f := range families {
		named[f.GetName()] = f
	}
	return named
}

// pay runs once for each key, and pays with a key that is derived from it.
func pay(bank string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		attempt, _ := reprise.AttemptFrom(ctx)
		key, err := attempt.Key("charge")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		out, err := http.NewRequestWithContext(ctx, http.MethodPost, bank+"/payments/"+key, r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(out)
		switch {
		case err == nil:
			defer res.Body.Close()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(res.StatusCode)
			_, _ = io.Copy(w, res.Body)
		case repriseclient.NotSent(err):
			protocol.Release(ctx)
			http.Error(w, "the bank is away, and nothing was paid", http.StatusServiceUnavailable)
		default:
			protocol.Unknown(ctx, "the bank went away before it answered")
			http.Error(w, "the bank has not answered", http.StatusGatewayTimeout)
		}
	})
}

// bank books payments in a ledger.
type bank struct {
	*httptest.Server

	holding chan struct{} // receives when a payment is in its hands
	gone    chan struct{} // closed when it goes away
	steady  atomic.Bool

	mu     sync.Mutex
	ledger []string // a key and a reference each
}

func openBank(t *testing.T) *bank {
	t.Helper()
	b := &bank{holding: make(chan struct{}), gone: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /payments/{key}", b.book)
	b.Server = httptest.NewServer(mux)
	t.Cleanup(b.Close)
	return b
}

// book books a payment, unless the bank goes away before it answers. Then the payment
// says how far it gets: "books" and never answers, or "hangs" and does neither.
func (b *bank) book(w http.ResponseWriter, r *http.Request) {
	var p struct{ Reference, Bank string }
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	lost := p.Bank != "" && !b.steady.Load()
	if !lost || p.Bank == "books" {
		b.mu.Lock()
		b.ledger = append(b.ledger, r.PathValue("key")+" "+p.Reference)
		b.mu.Unlock()
	}
	if lost {
		b.holding <- struct{}{}
		<-b.gone
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"status":"booked"}`)
}

// goesAway loses the payments in the bank's hands. It is back at once, and steady.
func (b *bank) goesAway() {
	b.steady.Store(true)
	close(b.gone)
}

// asked returns the bank's answer about a payment.
func (b *bank) asked(key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if strings.Contains(strings.Join(b.ledger, "\n"), key+" ") {
		return "booked"
	}
	return "no such payment"
}

// booked returns how often each order is in the ledger.
func (b *bank) booked() (lines []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range 4 {
		order, n := fmt.Sprint("order ", 100+i), 0
		for _, entry := range b.ledger {
			if strings.HasSuffix(entry, order) {
				n++
			}
		}
		lines = append(lines, fmt.Sprintf("%s is booked %d×", order, n))
	}
	return append(lines, fmt.Sprintf("the ledger has %d payments", len(b.ledger)))
}
