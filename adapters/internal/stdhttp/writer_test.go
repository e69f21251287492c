package stdhttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A flush where the writers outside have none is no start of the response.
func TestFlushThatIsNotSupportedChangesNothing(t *testing.T) {
	t.Parallel()
	app := bare{"/": func(behind http.ResponseWriter) {
		w, _ := behind.(*Writer)
		w.Behind = struct{ http.ResponseWriter }{w.Behind}
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("error %v", err)
		}
		w.WriteHeader(http.StatusAccepted)
	}}.serve(t)
	if first, _ := app.Twice("POST", "/"); first.Status != http.StatusAccepted {
		t.Errorf("answered %+v", first)
	}
}

// R33: net/http sends a response before its connection is taken, as some upgrades to
// another protocol rely on.
func TestR33HijackSendsWhatWasWritten(t *testing.T) {
	t.Parallel()
	for status, body := range map[int]string{http.StatusSwitchingProtocols: "", http.StatusOK: "hello", http.StatusNoContent: ""} {
		app := bare{"/": func(w http.ResponseWriter) {
			w.Header().Set("Upgrade", "raw")
			if body != "" {
				w.Header().Set("Content-Length", "5")
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			_ = http.NewResponseController(w).Flush()
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "raw")
		}}.serve(t)
		got := app.Talk("POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n")
		if !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", status)) || !strings.Contains(got, "\r\nUpgrade: raw\r\n") ||
			!strings.HasSuffix(got, "\r\n\r\n"+body+"raw") {
			t.Errorf("got %q", got)
		}
	}
}
