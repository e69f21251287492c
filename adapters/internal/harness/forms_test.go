package harness

import (
	"net/http"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
)

func TestCheckFormRejectsFormsThatAreNotCompared(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]Form{"urlencoded": URLEncoded, "multipart": Multipart} {
		app := New(t, memstore.New(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("paid " + r.FormValue("amount"))) //nolint:gosec // no browser shows it
		}))
		if got := judge(t, app, func() { app.CheckForm("/payments", "k", form) }); got != 1 {
			t.Errorf("%s: %d failures, want 1: the other amount was paid", name, got)
		}
	}
}
