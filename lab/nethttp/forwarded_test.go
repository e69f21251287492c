package labhttp_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/proxy"
)

// serveForwarded serves the handlers of the application, without an adapter, behind a
// [proxy.Handler] in the place of the adapter, with those options of a case that a file
// of the proxy can have.
func serveForwarded(tb testing.TB, o adaptertest.Options) (addr string) {
	tb.Helper()
	if name := beyondFile(&o); name != "" {
		tb.Skip("not applicable: a file of the proxy does not have " + name)
	}
	return testapp.InTest(testapp.NetHTTP(func(*protocol.Guard, func(*http.Request) (string, error)) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler {
			c := proxy.Config{Default: policyOf(&o.Guard)}
			return gateway(Forwarded(tb, o.Store, o.Engine, c, "header:"+adaptertest.TenantHeader, h))
		}
	}))(tb, o)
}

// gateway does as one in front of a proxy: requests of no tenant get one, and those to an
// address, which says which server of two it is, are to a host.
func gateway(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values(adaptertest.TenantHeader)) == 0 {
			r.Header.Set(adaptertest.TenantHeader, adaptertest.DefaultTenant)
		}
		if _, err := netip.ParseAddrPort(r.Host); err == nil {
			r.Host = "conformance.test"
		}
		next.ServeHTTP(w, r)
	})
}

// Forwarded serves an upstream and returns a proxy in front of it. Both end with the
// test.
func Forwarded(tb testing.TB, st store.Store, engine reprise.Config, c proxy.Config, scope string, upstream http.Handler) *proxy.Handler {
	tb.Helper()
	ln, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	labtest.Must(tb, err)
	server := &http.Server{Handler: upstream, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	tb.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			tb.Error(err)
		}
	})
	err = errors.Join(c.Upstream.UnmarshalText([]byte("http://"+ln.Addr().String())), c.Scope.UnmarshalText([]byte(scope)))
	labtest.Must(tb, err)
	engine.Log = slog.New(slog.DiscardHandler)
	h, err := proxy.New(st, c, proxy.Options{Engine: engine})
	labtest.Must(tb, err)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), time.Second)
		defer cancel()
		_ = h.Close(ctx) // a case may leave runs behind
	})
	return h
}

// inFile are the fields of a [protocol.Config] that cases set and for which a file has
// one. A file has more, which the proxy's own tests cover.
var inFile = []string{"Label", "Required", "Preset", "Retention", "Horizon", "FailOpen", "Limits", "Fingerprint"}

// beyondFile returns the name of an option that no file has.
func beyondFile(o *adaptertest.Options) string {
	if o.Inner != nil {
		return "Inner"
	}
	for field, value := range reflect.ValueOf(o.Guard).Fields() {
		if !value.IsZero() && !slices.Contains(inFile, field.Name) {
			return field.Name
		}
	}
	return ""
}

// policyOf returns the options of a guard that a file can have.
func policyOf(g *protocol.Config) proxy.Policy {
	p := proxy.Policy{
		Name: g.Label, Required: g.Required, Preset: "recoverable",
		Retention: proxy.Duration(g.Retention), Horizon: proxy.Duration(g.Horizon), FailOpen: g.FailOpen,
		MaxRequestBody: g.Limits.RequestBody, MaxResponseBody: g.Limits.ResponseBody, FingerprintHeaders: g.Fingerprint.Headers,
	}
	if g.Preset == reprise.AtMostOnce {
		p.Preset = "at-most-once"
	}
	if g.Fingerprint.Func != nil { // no case has another than CanonicalJSON
		p.Fingerprint = "json"
	}
	return p
}
