package edges_test

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

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	repriseclient "github.com/reprise-go/reprise/client"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

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
