package labhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// Two services have guards of the default configuration, the same tenants and the same
// path, and a client sends one key and one body to both. Apart by their prefixes both
// run; with one prefix the second answers with the record of the first.
func TestServicesOnOneRedisAreApartByTheirPrefixes(t *testing.T) {
	t.Parallel()
	server := servers.Redis.Shared(t)
	service := func(name, prefix string) string {
		t.Helper()
		store, err := repriseredis.Open(t.Context(), labtest.RedisClient(t, server.Addr()), repriseredis.Config{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		guard, err := protocol.New(store, protocol.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = guard.Close(context.WithoutCancel(t.Context())) })
		tenant := func(*http.Request) (string, error) { return "acme", nil }
		handler := reprisehttp.Middleware(guard, tenant)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = fmt.Fprintf(w, "made by %s", name)
		}))
		s := httptest.NewServer(handler)
		t.Cleanup(s.Close)
		return s.URL + "/v1/transactions"
	}
	sent := func(url string) string {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"cents":100}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "api.example"
		request.Header.Set("Idempotency-Key", `"7c1f"`)
		response, err := new(http.Client).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}

	orders := labtest.RedisPrefix()
	for _, row := range []struct{ name, prefix, want string }{
		{"orders", orders, "made by orders"},
		{"refunds", labtest.RedisPrefix(), "made by refunds"},
		{"refunds with the prefix of orders", orders, "made by orders"},
	} {
		if got := sent(service(row.name, row.prefix)); got != row.want {
			t.Errorf("%s answers %q, want %q", row.name, got, row.want)
		}
	}
}
