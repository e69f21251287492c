package harness

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
)

// wrong serves applications that a check has to reject: their responses are marked as
// replays, or differ, as each path says.
func wrong(t *testing.T) *App {
	t.Helper()
	mux := http.NewServeMux()
	app := New(t, memstore.New(), mux)
	seen := map[string]int{}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		n := seen[r.Header.Get("Idempotency-Key")]
		seen[r.Header.Get("Idempotency-Key")]++
		if strings.Contains(r.URL.Path, "mark") && n > 0 || strings.Contains(r.URL.Path, "early") {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		if strings.Contains(r.URL.Path, "field") {
			w.Header().Set("X-Made", strconv.Itoa(n))
		}
		if strings.Contains(r.URL.Path, "body") {
			fmt.Fprint(w, n)
		}
	})
	return app
}

func TestTwiceRejectsANewRun(t *testing.T) {
	t.Parallel()
	app := wrong(t)
	for path, failures := range map[string]int{"/mark": 0, "/nothing": 1, "/mark/early": 1, "/mark/body": 1, "/mark/field": 1, "/mark/body/field": 2} {
		if got := judge(t, app, func() { app.Twice("POST", path) }); got != failures {
			t.Errorf("%s: %d failures, want %d", path, got, failures)
		}
	}
}

func TestAfreshRejectsReplays(t *testing.T) {
	t.Parallel()
	app := wrong(t)
	for path, failures := range map[string]int{"/body": 0, "/mark": 1, "/early": 1} {
		if got := judge(t, app, func() { app.Afresh("POST", path) }); got != failures {
			t.Errorf("%s: %d failures, want %d", path, got, failures)
		}
	}
}
