// Package stacks_test has the layers of net/http, chi, gorilla and OpenTelemetry around
// the adapter for net/http. It is a separate module, so that lab/nethttp, whose server
// other tests of the lab run, needs none of them.
package stacks_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// A handler that outlives the timeout outside is recorded, and its retry gets the
// response.
func TestTimeoutOutside(t *testing.T) {
	t.Parallel()
	stack.RunLate(t, http.StatusServiceUnavailable, false, func(t *testing.T, guard *protocol.Guard, late *stack.Late) string {
		t.Helper()
		guarded := reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			late.Wait()
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "done")
		}))
		return stack.Serve(t, http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer late.Ended()
			guarded.ServeHTTP(w, r)
		}), timeoutOutside, "late"))
	})
}

// timeoutOutside is how long a client waits for a handler that is late. The answers to
// its retries have to come sooner, on a busy machine too.
const timeoutOutside = time.Second
