package labhttp_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/wire"
	"github.com/reprise-go/reprise/proxy"
)

func TestProxyWire(t *testing.T) { wire.RunOn(t, "proxy", serveForwarded) } //nolint:paralleltest // it measures memory

// serveForwarded serves the handlers of the application, without an adapter, behind a
// [proxy.Handler] in the place of the adapter, with those options of a case that a file
// of the proxy can have.
func serveForwarded(tb testing.TB, o adaptertest.Options) (addr string) {
	tb.Helper()
	if o.Guard.Problems.Write != nil {
		tb.Skip("not applicable: a file of the proxy has no functions")
	}
	return testapp.InTest(testapp.NetHTTP(func(*protocol.Guard, func(*http.Request) (string, error)) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler {
			forward := forwarded(tb, &o, h)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if len(r.Header.Values(adaptertest.TenantHeader)) == 0 { // as a gateway in front of the proxy
					r.Header.Set(adaptertest.TenantHeader, adaptertest.DefaultTenant)
				}
				forward.ServeHTTP(w, r)
			})
		}
	}))(tb, o)
}

// forwarded serves an upstream and returns a proxy in front of it. Both end with the
// test.
func forwarded(tb testing.TB, o *adaptertest.Options, upstream http.Handler) *proxy.Handler {
	tb.Helper()
	server := httptest.NewUnstartedServer(upstream)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	tb.Cleanup(server.Close)
	c := proxy.Config{Default: proxy.Policy{
		Name: o.Guard.Label, Preset: "recoverable", MaxRequestBody: o.Guard.Limits.RequestBody, MaxResponseBody: o.Guard.Limits.ResponseBody,
	}}
	if o.Guard.Fingerprint.Func != nil { // CanonicalJSON
		c.Default.Fingerprint = "json"
	}
	labtest.Must(tb, errors.Join(c.Upstream.UnmarshalText([]byte(server.URL)), c.Scope.UnmarshalText([]byte("header:"+adaptertest.TenantHeader))))
	engine := o.Engine
	engine.Log = slog.New(slog.DiscardHandler)
	h, err := proxy.New(o.Store, c, proxy.Options{Engine: engine})
	labtest.Must(tb, err)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), time.Second)
		defer cancel()
		_ = h.Close(ctx) // a case may leave runs behind
	})
	return h
}
