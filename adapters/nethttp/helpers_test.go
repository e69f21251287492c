package reprisehttp

import (
	"net/http"
	"testing"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// setup serves a handler behind the middleware on a real listener.
func setup(t *testing.T, policy protocol.Config, scope Scope, handler http.HandlerFunc) *harness.App {
	t.Helper()
	mux := http.NewServeMux()
	app := harness.New(t, memstore.New(), mux)
	mux.Handle("/", Middleware(app.Guard(policy), scope)(handler))
	return app
}
