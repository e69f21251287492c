package stack

import (
	"net/http"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

// RunUse sends a request with a key, and its retry, to a service that has the adapter for
// net/http where it belongs, and expects the status twice, the second time as a replay.
func RunUse(t *testing.T, status int, build func(*protocol.Guard) http.Handler) {
	t.Helper()
	c := client{t: t, addr: Serve(t, build(Guard(t)))}
	first, again := c.send("", "use"), c.send("", "use")
	if first.err != nil || first.status != status || first.replayed {
		t.Errorf("answered %d %q, %v, want %d", first.status, first.body, first.err, status)
	}
	if !again.replayed || again.status != status || again.body != first.body {
		t.Errorf("the retry got %d %q, replayed %v, want %d %q", again.status, again.body, again.replayed, status, first.body)
	}
}

// Plain are handlers of net/http, by the status that they answer with.
var Plain = map[int]http.HandlerFunc{
	http.StatusOK:       func(http.ResponseWriter, *http.Request) {}, // neither a status nor a body
	http.StatusAccepted: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
	http.StatusConflict: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "taken", http.StatusConflict) },
}
