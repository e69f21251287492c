package reprisehttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// Layers outside, such as those for metrics and traces, name a request by the pattern of
// its route.
func TestPatternAndPathValuesReachTheLayersOutside(t *testing.T) {
	t.Parallel()
	guard, err := protocol.New(memstore.New(), protocol.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close(context.WithoutCancel(t.Context())) })
	type outerKey struct{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}", func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Fail") != "" {
			panic(http.ErrAbortHandler)
		}
	})
	inside := reprisehttp.Middleware(guard, reprisehttp.Unscoped)(mux)
	for name, keyed := range map[string]bool{"without a key": false, "with a key": true, "with a key, cut short": true} {
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), outerKey{}, "outer"), http.MethodPost, "/orders/7", strings.NewReader("body"))
		body := r.Body
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
		if r.Body != body || r.Context().Value(outerKey{}) != "outer" {
			t.Errorf("%s: the request has another body or context", name)
		}
		if _, inside := reprise.AttemptFrom(r.Context()); inside {
			t.Errorf("%s: the context of the run is outside", name)
		}
	}
}
