package client_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// A record may have the field of a policy that named its marker later: the marker
// replaces it.
func TestMarkerReplacesAFieldOfAnOldRecord(t *testing.T) {
	t.Parallel()
	const name = "X-Order-Repeated"
	before, err := protocol.New(memstore.New(), protocol.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close(context.WithoutCancel(t.Context()))
	after, err := before.With(func(c *protocol.Config) { c.Announce.ReplayedHeader = name })
	if err != nil {
		t.Fatal(err)
	}
	for i, guard := range []*protocol.Guard{before, after} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader("order"))
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(name, "handler")
		})).ServeHTTP(w, r)
		if want := []string{"handler", "true"}[i]; !slices.Equal(w.Header()[name], []string{want}) {
			t.Errorf("request %d: %s is %q, want %q", i, name, w.Header()[name], want)
		}
	}
}

// The client follows a policy with a marker of its own: the replay of a 503 is final, and
// the field that the handler sets itself marks nothing.
func TestClientFollowsTheNameOfTheMarker(t *testing.T) {
	t.Parallel()
	const name = "X-Order-Repeated"
	guard, err := protocol.New(memstore.New(), protocol.Config{Announce: protocol.Announcing{ReplayedHeader: name}})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close(context.WithoutCancel(t.Context()))
	runs := 0
	server := httptest.NewServer(reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runs++
		w.Header().Set(name, "true")
		w.Header().Set("Idempotent-Replayed", "true")
		protocol.Keep(r.Context())
		w.WriteHeader(http.StatusServiceUnavailable)
	})))
	defer server.Close()
	transport, err := repriseclient.NewTransport(server.Client().Transport, repriseclient.Config{
		Service: repriseclient.Service{Replayed: name}, Delay: 1, MaxDelay: 1, MaxAttempts: 5, Budget: repriseclient.Budget{Off: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("order"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if attempts := repriseclient.Attempts(resp); runs != 1 || attempts != 2 || !repriseclient.Replayed(resp) || resp.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("%d runs, %d attempts, the header is %v", runs, attempts, resp.Header)
	}
}
