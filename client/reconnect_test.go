package repriseclient

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// net/http silently repeats a request with an Idempotency-Key when a reused connection
// breaks, and returns only the error of the last connection. A service that runs an
// operation and then dies must not be reported as never reached.
func TestARequestThatNetHTTPRepeatedMayHaveRun(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if runs.Add(1) == 1 {
			return // the connection stays open
		}
		_ = server.Listener.Close() // the service dies after its operation
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	}))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	transport := newTransport(t, base, Config{MaxAttempts: 1})
	send := func() (*http.Response, error) {
		req := post(t.Context(), t, strings.NewReader("a"))
		req.URL.Host = server.Listener.Addr().String()
		return transport.RoundTrip(req)
	}
	first, err := send()
	must(t, err)
	_ = first.Body.Close()

	_, err = send()
	var dial *net.OpError
	if !errors.As(err, &dial) || dial.Op != "dial" || runs.Load() != 2 {
		t.Fatalf("%d runs, and the error %v, want 2 and the error of a second connection", runs.Load(), err)
	}
	var unknown *UnknownOutcomeError
	if !errors.As(err, &unknown) {
		t.Errorf("error %v, want an UnknownOutcomeError: the operation ran", err)
	}
}
