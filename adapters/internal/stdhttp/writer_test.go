package stdhttp

import (
	"errors"
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

// R33: net/http sends a header that was written before the connection is taken, as some
// upgrades to another protocol rely on.
func TestR33HijackSendsWhatWasWritten(t *testing.T) {
	t.Parallel()
	app := bare{"/": func(w http.ResponseWriter) {
		w.Header().Set("Upgrade", "raw")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "raw")
	}}.serve(t)
	got := app.Talk("POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 101 ") || !strings.Contains(got, "\r\nUpgrade: raw\r\n") || !strings.HasSuffix(got, "\r\n\r\nraw") {
		t.Errorf("got %q", got)
	}
}
