package stack

import (
	"net/http"
	"strings"
	"testing"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
)

// RunMisuse sends a request with a key, and its retry, to a service that has the adapter
// for net/http where it does not see its handler's response. build builds the service
// with a handler for POST at /. Each request has to end in a panic that names the adapter
// to use instead, and none may be replayed.
func RunMisuse(t *testing.T, adapter string, build func(*protocol.Guard) http.Handler) {
	t.Helper()
	said := make(chan any, 2)
	service := build(newGuard(t))
	c := client{t: t, addr: Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			value := recover()
			said <- value
			if value != nil {
				panic(http.ErrAbortHandler)
			}
		}()
		service.ServeHTTP(w, r)
	}))}
	for range 2 {
		if a := c.send("/", "", "misuse"); a.err == nil {
			t.Errorf("answered %d %q, replayed %v: want none", a.status, a.body, a.replayed)
		}
		if text, _ := (<-said).(string); !strings.HasPrefix(text, "reprisehttp: ") || !strings.Contains(text, adapter) {
			t.Errorf("panic %q, want one of reprisehttp that names %s", text, adapter)
		}
	}
}

// RunMisuseBeside runs [RunMisuse] with the adapter alone, and with another layer of
// net/http around it or inside it. build gets the layer to adapt to its framework.
func RunMisuseBeside(t *testing.T, adapter string, build func(layer func(http.Handler) http.Handler) http.Handler) {
	t.Helper()
	other := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) })
	}
	for name, layer := range map[string]func(next http.Handler, ours func(http.Handler) http.Handler) http.Handler{
		"alone":         func(next http.Handler, ours func(http.Handler) http.Handler) http.Handler { return ours(next) },
		"first of two":  func(next http.Handler, ours func(http.Handler) http.Handler) http.Handler { return ours(other(next)) },
		"second of two": func(next http.Handler, ours func(http.Handler) http.Handler) http.Handler { return other(ours(next)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			RunMisuse(t, adapter, func(guard *protocol.Guard) http.Handler {
				ours := reprisehttp.Middleware(guard, reprisehttp.Unscoped)
				return build(func(next http.Handler) http.Handler { return layer(next, ours) })
			})
		})
	}
}

// RunUse sends a request with a key, and its retry, to a service that has the adapter for
// net/http where it belongs, and expects the status twice, the second time as a replay.
func RunUse(t *testing.T, status int, build func(*protocol.Guard) http.Handler) {
	t.Helper()
	c := client{t: t, addr: Serve(t, build(newGuard(t)))}
	first, again := c.send("/", "", "use"), c.send("/", "", "use")
	if first.err != nil || first.status != status || first.replayed {
		t.Errorf("answered %d %q, %v, want %d", first.status, first.body, first.err, status)
	}
	if !again.replayed || again.status != status || again.body != first.body {
		t.Errorf("the retry got %d %q, replayed %v, want %d %q", again.status, again.body, again.replayed, status, first.body)
	}
}

// RunSilent sends a request with a key to a service whose handler writes no response, and
// expects an empty 200.
func RunSilent(t *testing.T, build func(*protocol.Guard) http.Handler) {
	t.Helper()
	c := client{t: t, addr: Serve(t, build(newGuard(t)))}
	if a := c.send("/", "", "silent"); a.err != nil || a.status != http.StatusOK || a.body != "" {
		t.Errorf("answered %d %q, %v, want an empty 200", a.status, a.body, a.err)
	}
}

// Plain are handlers of net/http, by the status that they answer with.
var Plain = map[int]http.HandlerFunc{
	http.StatusOK:       func(http.ResponseWriter, *http.Request) {}, // neither a status nor a body
	http.StatusAccepted: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
	http.StatusConflict: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "taken", http.StatusConflict) },
}
