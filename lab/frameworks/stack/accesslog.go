package stack

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// AccessLogOfPanic fails the test unless a keyed request to status, whose handler panics,
// is answered 500 and has a line with that status in the log: the order of layers in
// docs/guides/middlewares.md keeps it.
func AccessLogOfPanic(t *testing.T, log *bytes.Buffer, status func(*http.Request) (int, error)) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader("body"))
	r.Header.Set("Idempotency-Key", rand.Text())
	if got, err := status(r); err != nil || got != http.StatusInternalServerError {
		t.Errorf("the answer is %d, %v, want 500", got, err)
	}
	if line := log.String(); !strings.Contains(line, "500") {
		t.Errorf("the access log is %q, want a line with 500", line)
	}
}

// Recorded returns the status with which a handler of net/http answers.
func Recorded(h http.Handler) func(*http.Request) (int, error) {
	return func(r *http.Request) (int, error) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, nil
	}
}

// PanicValue is the panic of a handler in [AccessLogOfPanic].
const PanicValue = "the handler panics"
