package stack

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
)

// RunProxy sends a request with a key, and its retry, to a service with a reverse proxy
// inside a framework's adapter, whose upstream executes and breaks off: before its
// response, and in its body. The retry has to be refused, and not to reach the upstream.
func RunProxy(t *testing.T, build func(guard *protocol.Guard, proxy http.Handler) http.Handler) {
	t.Helper()
	for name, part := range map[string]string{
		"before the response": "",
		"in the body":         "HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\npa",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var executed atomic.Int64
			upstream := &url.URL{Scheme: "http", Host: Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				executed.Add(1)
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(conn, part)
				_ = conn.Close()
			}))}
			proxy := &httputil.ReverseProxy{
				Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
				Transport: &http.Transport{DisableKeepAlives: true},
				ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
			}
			c := client{t: t, addr: Serve(t, build(Guard(t), reprisehttp.Proxy(proxy)))}
			if first := c.send("", "proxy"); first.err == nil && first.status != http.StatusBadGateway {
				t.Errorf("answered %d %q, want 502 or a broken response", first.status, first.body)
			}
			if again := c.send("", "proxy"); again.status != http.StatusConflict || !strings.Contains(again.body, "outcome-unknown") {
				t.Errorf("the retry got %d %q, want 409 outcome-unknown", again.status, again.body)
			}
			if n := executed.Load(); n != 1 {
				t.Errorf("the upstream executed %d times, want once", n)
			}
		})
	}
}
