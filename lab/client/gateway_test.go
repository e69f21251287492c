package client_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	repriseclient "github.com/reprise-go/reprise/client"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// A gateway whose upstream honours the key asks again for a response that was lost, and
// its client gets it.
func TestAGatewayWithTheClientsTransportGetsALostResponse(t *testing.T) {
	t.Parallel()
	guard := func() *protocol.Guard {
		g, err := protocol.New(memstore.New(), protocol.Config{Preset: reprise.AtMostOnce})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := g.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		return g
	}
	var payments, requests atomic.Int64
	pay := reprisehttp.Middleware(guard(), reprisehttp.Unscoped)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		payments.Add(1)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "paid")
	}))
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			pay.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // the response is lost
		}
		pay.ServeHTTP(w, r)
	}))
	t.Cleanup(bank.Close)
	target, err := url.Parse(bank.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := repriseclient.NewTransport(&http.Transport{}, repriseclient.Config{Delay: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport}
	gateway := httptest.NewServer(reprisehttp.Middleware(guard(), reprisehttp.Unscoped)(reprisehttp.Proxy(proxy)))
	t.Cleanup(gateway.Close)

	for _, replayed := range []string{"", "true"} {
		res := payThrough(t, gateway)
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusCreated || string(body) != "paid" || res.Header.Get("Idempotent-Replayed") != replayed {
			t.Errorf("got %d %q, replayed %q, want 201 and %q", res.StatusCode, body, res.Header.Get("Idempotent-Replayed"), replayed)
		}
	}
	if payments.Load() != 1 || requests.Load() != 2 {
		t.Errorf("%d payments in %d requests, want 1 in 2", payments.Load(), requests.Load())
	}
}

// A response with which the transport gave up is not the operation's: a gateway that
// releases it asks again, and one that does not replays it.
func TestAGatewayReleasesWhatTheClientsTransportGaveUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		modify func(*http.Response) error
		again  int // the status of the retry
	}{
		"kept": {nil, http.StatusConflict},
		"released": {func(r *http.Response) error {
			if repriseclient.GaveUp(r) {
				protocol.Release(r.Request.Context())
			}
			return nil
		}, http.StatusCreated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if requests.Add(1) > 1 {
					w.WriteHeader(http.StatusCreated)
					return
				}
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusConflict)
				_, _ = io.WriteString(w, `{"code":"in-progress","retryable":true}`)
			}))
			t.Cleanup(bank.Close)
			target, err := url.Parse(bank.URL)
			if err != nil {
				t.Fatal(err)
			}
			transport, err := repriseclient.NewTransport(&http.Transport{}, repriseclient.Config{MaxAttempts: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(transport.CloseIdleConnections)
			proxy := &httputil.ReverseProxy{
				Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
				Transport: transport, ModifyResponse: test.modify,
			}
			guard, err := protocol.New(memstore.New(), protocol.Config{Preset: reprise.AtMostOnce})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := guard.Close(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
			gateway := httptest.NewServer(reprisehttp.Middleware(guard, reprisehttp.Unscoped)(reprisehttp.Proxy(proxy)))
			t.Cleanup(gateway.Close)
			for _, status := range []int{http.StatusConflict, test.again} {
				res := payThrough(t, gateway)
				_ = res.Body.Close()
				if res.StatusCode != status {
					t.Errorf("got %d, want %d", res.StatusCode, status)
				}
			}
		})
	}
}

// payThrough sends the one payment of these tests to a gateway.
func payThrough(t *testing.T, gateway *httptest.Server) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, gateway.URL, strings.NewReader("12 EUR"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "k")
	res, err := gateway.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}
