package reprisehttp

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestMiddlewareNeedsGuardAndScope(t *testing.T) {
	t.Parallel()
	harness.Panics(t,
		func() { Middleware(nil, Unscoped) },
		func() { Middleware(new(protocol.Guard), nil) },
	)
}

// Layers outside, such as those for metrics and traces, name a request by the pattern of
// its route.
func TestPatternAndPathValuesReachTheLayersOutside(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}", func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Fail") != "" {
			panic(http.ErrAbortHandler)
		}
	})
	inside := Middleware(harness.New(t, memstore.New(), nil).Guard(protocol.Config{}), Unscoped)(mux)
	for name, keyed := range map[string]bool{"without a key": false, "with a key": true, "with a key, cut short": true} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders/7", strings.NewReader("body"))
		body, ctx := r.Body, r.Context()
		if keyed {
			r.Header.Set("Idempotency-Key", strconv.Quote(name))
		}
		if strings.HasSuffix(name, "short") {
			r.Header.Set("X-Fail", "1")
		}
		func() {
			defer func() { _ = recover() }()
			inside.ServeHTTP(httptest.NewRecorder(), r)
		}()
		if r.Pattern != "POST /orders/{id}" || r.PathValue("id") != "7" {
			t.Errorf("%s: the pattern is %q, id is %q", name, r.Pattern, r.PathValue("id"))
		}
		if r.Body != body || r.Context() != ctx {
			t.Errorf("%s: the request has another body or context", name)
		}
		if _, inside := reprise.AttemptFrom(r.Context()); inside {
			t.Errorf("%s: the context of the run is outside", name)
		}
	}
}
