package stdhttp

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// serve serves a handler in the way an adapter does.
func serve(t *testing.T, run func(*Writer, *http.Request, *protocol.Exchange)) *harness.App {
	t.Helper()
	mux := http.NewServeMux()
	app := harness.New(t, memstore.New(), mux)
	guard := app.Guard(protocol.Config{})
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		admission := guard.Admit(r.Context(), Request(r, TooLarge), func() (string, error) { return "", protocol.ErrUnscoped })
		if admission.Exchange == nil {
			admission.Response.Write(w.Header(), w)
			return
		}
		rec := &Writer{Behind: w}
		rec.Start(admission.Exchange, w.Header(), w, http.DetectContentType)
		defer rec.Close()
		run(rec, r, admission.Exchange)
		rec.Finish()
	})
	return app
}

func TestWriterReachesTheConnection(t *testing.T) {
	t.Parallel()
	serve(t, func(w *Writer, _ *http.Request, _ *protocol.Exchange) {
		w.Header().Set("X-Made", "1")
		_, _ = w.WriteString("one ")
		w.Flush()
		control := http.NewResponseController(w)
		if err := control.Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
		if err := control.SetWriteDeadline(time.Now().Add(harness.Patience)); err != nil {
			t.Errorf("the deadlines of the connection: %v", err)
		}
		_, _ = w.WriteString("two")
	}).Twice("POST", "/")
}

// A flush where the writers outside have none is no start of the response.
func TestFlushThatIsNotSupportedChangesNothing(t *testing.T) {
	t.Parallel()
	app := serve(t, func(w *Writer, _ *http.Request, _ *protocol.Exchange) {
		control := http.NewResponseController(w)
		w.Behind = struct{ http.ResponseWriter }{w.Behind}
		if err := control.Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("error %v", err)
		}
		w.WriteHeader(http.StatusAccepted)
	})
	if first, _ := app.Twice("POST", "/"); first.Status != http.StatusAccepted {
		t.Errorf("answered %+v", first)
	}
}

func TestWriterKnowsThatTheConnectionWasTaken(t *testing.T) {
	t.Parallel()
	app := serve(t, func(w *Writer, _ *http.Request, _ *protocol.Exchange) {
		if _, _, err := (&Writer{Behind: struct{ http.ResponseWriter }{w}}).Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("a writer that hides the connection: error %v", err)
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
	})
	raw := func() bool {
		return strings.HasSuffix(app.Talk("POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), "\r\n\r\nraw")
	}
	if !raw() {
		t.Error("the handler did not write to the connection")
	}
	app.Eventually(raw) // the handler ends after its connection, and its retry runs again
}

// R33: net/http sends a header that was written before the connection is taken, as some
// upgrades to another protocol rely on.
func TestR33HijackSendsWhatWasWritten(t *testing.T) {
	t.Parallel()
	app := serve(t, func(w *Writer, _ *http.Request, _ *protocol.Exchange) {
		w.Header().Set("Upgrade", "raw")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, _, err := w.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "raw")
	})
	got := app.Talk("POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 101 ") || !strings.Contains(got, "\r\nUpgrade: raw\r\n") || !strings.HasSuffix(got, "\r\n\r\nraw") {
		t.Errorf("got %q", got)
	}
}
