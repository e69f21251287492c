package labhttp_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// Two gateways share a Redis. A payment whose response one of them lost is refused by
// both, and the bank is asked once. One that was not sent is sent by the other.
func TestGatewaysOverRedisAskTheUpstreamOnce(t *testing.T) {
	t.Parallel()
	server := servers.Redis.Start(t)
	for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
		t.Run(preset.String(), func(t *testing.T) {
			t.Parallel()
			var payments atomic.Int64
			bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				payments.Add(1)
				if r.URL.Path == "/lost" {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(http.StatusCreated)
			}))
			t.Cleanup(bank.Close)
			closed := httptest.NewServer(http.NotFoundHandler())
			closed.Close()

			prefix := labtest.RedisPrefix()
			gateway := func(upstream string) string {
				store := labtest.RedisStore(t, labtest.RedisClient(t, server.Addr()), repriseredis.Config{Prefix: prefix})
				guard, err := protocol.New(store, protocol.Config{Preset: preset})
				if err != nil {
					t.Fatal(err)
				}
				target, err := url.Parse(upstream)
				if err != nil {
					t.Fatal(err)
				}
				transport := &http.Transport{}
				proxy := &httputil.ReverseProxy{
					Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
					Transport: transport, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
				}
				s := httptest.NewServer(reprisehttp.Middleware(guard, reprisehttp.Unscoped)(reprisehttp.Proxy(proxy)))
				t.Cleanup(func() {
					s.Close()
					transport.CloseIdleConnections()
					if err := guard.Close(context.WithoutCancel(t.Context())); err != nil {
						t.Error(err)
					}
				})
				return s.URL
			}
			client := &http.Client{Transport: &http.Transport{}}
			t.Cleanup(client.CloseIdleConnections)
			pay := func(gateway, path string) (status int, body string) {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, gateway+path, strings.NewReader("12 EUR"))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Idempotency-Key", path[1:])
				res, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				text, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				return res.StatusCode, string(text)
			}
			near, far, cutOff := gateway(bank.URL), gateway(bank.URL), gateway(closed.URL)

			if status, _ := pay(near, "/lost"); status != http.StatusBadGateway {
				t.Errorf("the first client got %d, want 502", status)
			}
			for _, g := range []string{near, far} {
				if status, body := pay(g, "/lost"); status != http.StatusConflict || !strings.Contains(body, "outcome-unknown") {
					t.Errorf("a retry got %d %q, want 409 outcome-unknown", status, body)
				}
			}
			if status, _ := pay(cutOff, "/refused"); status != http.StatusServiceUnavailable {
				t.Errorf("without a connection the client got %d, want 503", status)
			}
			for _, g := range []string{near, cutOff} { // a run, and its replay
				if status, _ := pay(g, "/refused"); status != http.StatusCreated {
					t.Errorf("the retry got %d, want 201", status)
				}
			}
			if n := payments.Load(); n != 2 {
				t.Errorf("the bank got %d payments, want 2", n)
			}
		})
	}
}
