package stdhttp

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// bare is handlers by their paths, which run without a key as if there were no
// middleware, and with one as an adapter runs them.
type bare map[string]func(http.ResponseWriter)

// serve serves the handlers in the way an adapter does.
func (b bare) serve(t *testing.T) *harness.App {
	t.Helper()
	mux := http.NewServeMux()
	app := harness.New(t, memstore.New(), mux)
	guard := app.Guard(protocol.Config{})
	for path, handler := range b {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Outer", "set")
			w.Header()["X-Hidden"] = nil
			admission := guard.Admit(r.Context(), Request(r, TooLarge), func() (string, error) { return "", protocol.ErrUnscoped })
			switch {
			case admission.Pass:
				handler(w)
			case admission.Exchange == nil:
				admission.Response.Write(w.Header(), w)
			default:
				rec := &Writer{Behind: w}
				rec.Start(admission.Exchange, w.Header(), w, http.DetectContentType)
				defer rec.Close()
				handler(rec)
				rec.Finish()
			}
		})
	}
	return app
}

// check fails the test unless each handler's first response, and its replay, have the
// fields of the bare one.
func (b bare) check(t *testing.T) {
	t.Helper()
	app := b.serve(t)
	for path := range b {
		want := app.Send("POST", path)
		first, again := app.Twice("POST", path)
		for what, got := range map[string]harness.Response{"first response": first, "replay": again} {
			_, dated := got.Header["Date"]
			_, wanted := want.Header["Date"]
			if dated != wanted || got.Status != want.Status || got.Body != want.Body || got.Header.Get("X-Outer") != want.Header.Get("X-Outer") ||
				!maps.EqualFunc(got.Kept(), want.Kept(), slices.Equal) || !maps.EqualFunc(got.Trailer, want.Trailer, slices.Equal) {
				t.Errorf("%s: the %s is %.300q, and the bare one %.300q", path, what, got, want)
			}
		}
	}
}

// A3: a field without values, which net/http leaves out, counts as it was when the header
// was written.
func TestA3SuppressedFields(t *testing.T) {
	t.Parallel()
	const html = "<html>"
	bare{
		"/date": func(w http.ResponseWriter) { w.Header()["Date"] = nil },
		"/both": func(w http.ResponseWriter) {
			w.Header()["Date"], w.Header()["Content-Type"] = nil, []string{}
			_, _ = io.WriteString(w, html)
		},
		"/shown":   func(w http.ResponseWriter) { w.Header().Set("X-Hidden", "shown") },
		"/deleted": func(w http.ResponseWriter) { w.Header().Del("X-Hidden") },
		"/trailers": func(w http.ResponseWriter) {
			w.Header()["Trailer"] = nil
			_, _ = io.WriteString(w, html)
			w.Header().Set("X-Sum", "1")
		},
		"/set-after": func(w http.ResponseWriter) {
			w.Header()["Date"], w.Header()["Content-Type"] = nil, nil
			w.WriteHeader(http.StatusCreated)
			w.Header().Set("Date", "x")
			w.Header().Set("Content-Type", "x")
			_, _ = io.WriteString(w, html)
		},
		"/removed-after": func(w http.ResponseWriter) {
			w.Header()["Date"], w.Header()["Content-Type"] = nil, nil
			w.WriteHeader(http.StatusCreated)
			w.Header().Del("Date")
			w.Header().Del("Content-Type")
			_, _ = io.WriteString(w, html)
		},
		"/suppressed-after": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusCreated)
			w.Header()["Date"], w.Header()["Content-Type"], w.Header()["X-Outer"] = nil, nil, nil
			_, _ = io.WriteString(w, html)
		},
		"/flushed": func(w http.ResponseWriter) {
			w.Header()["Date"], w.Header()["Content-Type"] = nil, nil
			w.WriteHeader(http.StatusCreated)
			w.Header().Del("Date")
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, html)
		},
	}.check(t)
}
