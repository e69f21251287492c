package otel_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	repriseotel "github.com/reprise-go/reprise/otel"
)

// client is the service's clients.
var client = &http.Client{Timeout: time.Minute}

// service is a process with a store that fails on command, and a page for Prometheus.
type service struct {
	*testing.T

	url     string
	store   *memstore.Store
	faults  *faultstore.Faults
	engine  *reprise.Engine
	guard   *protocol.Guard
	started chan struct{} // receives when a slow handler has started
	hold    chan struct{} // slow handlers end when it closes
	close   func()        // ends the process
}

func serve(t *testing.T) *service {
	t.Helper()
	return serveOver(t, memstore.New())
}

// busy is a service after traffic and trouble, whose store was counted and checked.
func busy(t *testing.T) *service {
	t.Helper()
	st := memstore.New()
	s := serveThrough(t, st, &checked{Store: st, findings: []store.Finding{{Code: "memory", Severity: store.Unsafe}}})
	s.counted()
	labtest.Eventually(t, "the first check", func() bool { return s.scrape()["reprise_store_findings"] != nil })
	s.traffic()
	s.trouble()
	return s
}

// counted waits until the stuck records were counted.
func (s *service) counted() {
	s.Helper()
	labtest.Eventually(s.T, "the first count", func() bool { return s.scrape()["reprise_stuck"] != nil })
}

// serveOver starts a process over a store that another one may have used.
func serveOver(t *testing.T, st *memstore.Store) *service {
	t.Helper()
	return serveThrough(t, st, &checked{Store: st, findings: []store.Finding{{Code: "pool-size", Severity: store.Warning}}})
}

// checked is a store in memory with a server that can be checked, and a pool.
type checked struct {
	*memstore.Store

	findings  []store.Finding
	unchecked error
	used      int64 // of ten connections
}

func (c *checked) Check(context.Context) ([]store.Finding, error) { return c.findings, c.unchecked }

func (c *checked) Usage() []store.Usage {
	return append(c.Store.Usage(), store.Usage{Name: "connections", Used: c.used, Limit: 10})
}

// unlisted is a store that may not be listed, as for a user of Redis without SCAN.
type unlisted struct{ *memstore.Store }

func (unlisted) List(context.Context, store.Query) (store.Page, error) {
	return store.Page{}, fmt.Errorf("%w: no permission to scan", store.ErrMisconfigured)
}

// serveThrough starts a service whose engine sees st as another store.
func serveThrough(t *testing.T, st *memstore.Store, seen store.Store) *service {
	t.Helper()
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	labtest.Must(t, err)
	provider := metric.NewMeterProvider(metric.WithReader(exporter))
	telemetry, err := repriseotel.New(repriseotel.Config{MeterProvider: provider})
	labtest.Must(t, err)
	s := &service{T: t, store: st, started: make(chan struct{}, 1), hold: make(chan struct{})}
	faulty, faults := faultstore.New(seen)
	s.faults = faults
	s.engine, err = reprise.New(telemetry.Store(faulty), reprise.Config{
		Observer: telemetry, Detach: repriseotel.Detach, Lease: 3 * time.Second,
		ClaimTimeout: 500 * time.Millisecond, CompleteTimeout: 500 * time.Millisecond,
	})
	labtest.Must(t, err)
	stop, err := telemetry.Watch("main", s.engine)
	labtest.Must(t, err)
	stopStore, err := telemetry.WatchStore("main", seen)
	labtest.Must(t, err)
	s.guard, err = protocol.Over(s.engine, protocol.Config{Label: "orders", Required: true, Preset: reprise.AtMostOnce, Keep: protocol.Keeping{Annotate: repriseotel.Annotate}})
	labtest.Must(t, err)
	mux := http.NewServeMux()
	mux.Handle("POST /orders", reprisehttp.Middleware(s.guard, reprisehttp.Unscoped)(http.HandlerFunc(s.order)))
	patient, err := s.guard.With(func(c *protocol.Config) { c.Label, c.Wait = "patient", time.Minute })
	labtest.Must(t, err)
	mux.Handle("POST /patient", reprisehttp.Middleware(patient, reprisehttp.Unscoped)(http.HandlerFunc(s.order)))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := httptest.NewServer(mux)
	s.url = server.URL
	s.close = sync.OnceFunc(func() {
		close(s.hold)
		faults.Clear()
		faults.Close()
		server.Close()
		client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		labtest.Must(t, errors.Join(s.engine.Close(ctx), stop(), stopStore(), provider.Shutdown(ctx)))
	})
	t.Cleanup(s.close)
	return s
}

func (s *service) order(w http.ResponseWriter, r *http.Request) {
	switch r.Header.Get("X-Test") {
	case "slow":
		s.started <- struct{}{}
		<-s.hold
	case "release":
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// send sends an order with a key, no key where it is empty, and returns the status.
func (s *service) send(key, body, test string) int {
	s.Helper()
	return s.sendTo("/orders", key, body, test)
}

func (s *service) sendTo(path, key, body, test string) int {
	s.Helper()
	got, err := client.Do(s.request(s.Context(), path, key, body, test))
	if err != nil {
		s.Error(err)
		return 0
	}
	defer got.Body.Close()
	_, _ = io.Copy(io.Discard, got.Body)
	return got.StatusCode
}

func (s *service) request(ctx context.Context, path, key, body, test string) *http.Request {
	s.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(body))
	labtest.Must(s, err)
	if key != "" {
		r.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	r.Header.Set("X-Test", test)
	return r
}

func (s *service) want(what string, got, want int) {
	s.Helper()
	if got != want {
		s.Errorf("%s: status %d, want %d", what, got, want)
	}
}

// die cuts the process off from its store while an attempt runs, until its lease has
// lapsed.
func (s *service) die() {
	s.Helper()
	for _, op := range []faultstore.Op{faultstore.Renew, faultstore.Complete, faultstore.Release} {
		s.faults.Always(op, faultstore.FailBefore(store.ErrUnavailable))
	}
	go func() { // until the test has ended
		got, err := client.Do(s.request(context.WithoutCancel(s.Context()), "/orders", "stuck", "", "slow"))
		if err == nil {
			_ = got.Body.Close()
		}
	}()
	<-s.started
	labtest.Eventually(s.T, "the lease to be lost", func() bool { return s.engine.Stats().Leases == 0 })
	labtest.Eventually(s.T, "the record to lapse", func() bool {
		page, err := s.store.List(s.Context(), store.Query{States: store.States(store.StateLapsed), Limit: 1})
		return err == nil && len(page.Records) == 1
	})
}

// stuck makes an attempt lose its lease while it runs, and its client retry.
func (s *service) stuck() {
	s.Helper()
	s.die()
	labtest.Eventually(s.T, "a retry to find the lapsed record", func() bool {
		s.want("a retry", s.send("stuck", "", ""), 409)
		lapsed, _ := value(s.scrape()["reprise_requests_total"], "reprise_outcome", "lapsed")
		return lapsed > 0
	})
	s.hold <- struct{}{}
	labtest.Eventually(s.T, "the attempt to end", func() bool { return s.engine.Stats().Background > 0 })
	s.faults.Clear()
}

// scrape returns the metrics as Prometheus gets them, by name.
func (s *service) scrape() map[string]*dto.MetricFamily {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.url+"/metrics", http.NoBody)
	labtest.Must(s, err)
	got, err := client.Do(r)
	labtest.Must(s, err)
	defer got.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(got.Body)
	labtest.Must(s, err)
	return families
}

// traffic makes one of nearly everything.
func (s *service) traffic() {
	s.Helper()
	s.want("new", s.send("one", "", ""), 201)
	s.want("replay", s.send("one", "", ""), 201)
	s.want("mismatch", s.send("one", "other", ""), 422)
	s.want("no key", s.send("", "", ""), 400)
	s.want("released", s.send("two", "", "release"), 429)
	slow := make(chan int, 1)
	go func() { slow <- s.send("three", "", "slow") }()
	<-s.started
	s.want("in progress", s.send("three", "", ""), 409)
	s.hold <- struct{}{}
	s.want("slow", <-slow, 201)

	go func() { slow <- s.sendTo("/patient", "waited for", "", "slow") }()
	<-s.started
	waiter := make(chan int, 1)
	go func() { waiter <- s.sendTo("/patient", "waited for", "", "slow") }()
	labtest.Eventually(s.T, "the duplicate to wait", func() bool { return s.engine.Stats().Waiting == 1 })
	s.hold <- struct{}{}
	s.want("the first", <-slow, 201)
	s.want("the duplicate", <-waiter, 201)
}

// trouble causes the conditions of the alerts.
func (s *service) trouble() {
	s.Helper()
	s.faults.Always(faultstore.Claim, faultstore.FailBefore(store.ErrUnavailable))
	for range 5 {
		s.want("store down", s.send("four", "", ""), 503)
	}
	s.faults.Always(faultstore.Claim, faultstore.FailBefore(store.ErrCorrupt))
	s.want("corrupt", s.send("five", "", ""), 500)
	s.faults.Clear()
	for range 20 {
		s.want("reused", s.send("one", "other", ""), 422)
	}
	s.faults.Always(faultstore.Complete, faultstore.FailBefore(store.ErrCorrupt))
	s.want("unrecorded", s.send("six", "", ""), 201)
	s.faults.Clear()
}
