package stdhttp

import (
	"bufio"
	"crypto/rand"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// bare is handlers by their paths, which run without a key as if there were no
// middleware.
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

var date = regexp.MustCompile(`\r\nDate: [^\r]+`)

// talk sends a request to path in a version of HTTP/1, and returns the bytes of the
// response, without the time.
func talk(app *harness.App, version, path, key string) string {
	request := "POST " + path + " HTTP/" + version + "\r\nHost: h\r\nContent-Length: 0\r\nConnection: close\r\n"
	if key != "" {
		request += "Idempotency-Key: " + key + "\r\n"
	}
	return date.ReplaceAllString(app.Talk(request+"\r\n"), "\r\nDate: now")
}

// A message is a response as its client sees it.
type message struct {
	head    []string // the status line, and the field lines in the order of their names
	body    string
	trailer http.Header
}

// parsed returns the response in text.
func parsed(t *testing.T, text string) message {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), nil)
	if err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Errorf("%v: %q", err, text)
	}
	maps.DeleteFunc(res.Trailer, isEmpty)
	head, _, _ := strings.Cut(text, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	slices.Sort(lines[1:])
	return message{lines, string(body), res.Trailer}
}

// isEmpty reports whether a trailer was announced only.
func isEmpty(_ string, values []string) bool { return len(values) == 0 }

// has reports whether the response has a field.
func (m message) has(field string) bool {
	return slices.ContainsFunc(m.head, func(line string) bool { return strings.HasPrefix(line, field+":") })
}

// content returns the response without the framing and the mark of a replay.
func (m message) content() message {
	m.head = slices.DeleteFunc(slices.Clone(m.head), func(line string) bool {
		name, _, _ := strings.Cut(line, ":")
		return slices.Contains([]string{"Idempotent-Replayed", "Content-Length", "Connection", "Trailer", "Transfer-Encoding"}, name)
	})
	m.head[0] = m.head[0][len("HTTP/1.1"):]
	return m
}

func (m message) equal(other message) bool {
	return slices.Equal(m.head, other.head) && m.body == other.body && maps.EqualFunc(m.trailer, other.trailer, slices.Equal)
}

// check fails the test unless each handler's first response is the bare one, and its
// replay too but for the framing.
func (b bare) check(t *testing.T) {
	t.Helper()
	app := b.serve(t)
	for path := range b {
		for _, version := range []string{"1.0", "1.1"} {
			key := rand.Text()
			want, first := parsed(t, talk(app, version, path, "")), parsed(t, talk(app, version, path, key))
			if !first.equal(want) {
				t.Errorf("%s in HTTP/%s: the first response is %.300q, and the bare one %.300q", path, version, first, want)
			}
			for _, again := range []string{"1.0", "1.1"} {
				got, want := parsed(t, talk(app, again, path, key)), want.content()
				if again == "1.0" {
					want.trailer = nil
				}
				if !got.has("Idempotent-Replayed") || !got.content().equal(want) {
					t.Errorf("%s in HTTP/%s, and the retry in HTTP/%s: the replay is %.300q, and the bare response %.300q", path, version, again, got, want)
				}
				if again == "1.0" && (got.has("Transfer-Encoding") || got.has("Trailer") || got.body != "" && !got.has("Content-Length")) {
					t.Errorf("%s: a replay in HTTP/1.0 is %.300q", path, got)
				}
			}
		}
		b.check2(t, app, path)
	}
}

// check2 is check for HTTP/2.
func (bare) check2(t *testing.T, app *harness.App, path string) {
	t.Helper()
	key := rand.Text()
	var want harness.Response
	for i, fields := range [][]string{nil, {"Idempotency-Key", key}, {"Idempotency-Key", key}} {
		got, err := app.Try2(app.Request("POST", path, "", fields...))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := got.Header["Date"]; ok {
			got.Header.Set("Date", "now")
		}
		if got.Replayed() != (i == 2) {
			t.Errorf("%s in HTTP/2: response %d is %+v", path, i, got)
		}
		for _, name := range []string{"Content-Length", "Trailer", "Idempotent-Replayed"} {
			got.Header.Del(name)
		}
		maps.DeleteFunc(got.Trailer, isEmpty)
		if i == 0 {
			want = got
		} else if got.Status != want.Status || got.Body != want.Body || !maps.EqualFunc(got.Header, want.Header, slices.Equal) ||
			!maps.EqualFunc(got.Trailer, want.Trailer, slices.Equal) {
			t.Errorf("%s in HTTP/2: response %d is %.500q, and the bare one %.500q", path, i, got, want)
		}
	}
	for _, again := range []string{"1.0", "1.1"} {
		got, allowed := parsed(t, talk(app, again, path, key)), len(want.Header["X-Sum"]) > 0
		if got.has("X-Sum") && !allowed || again == "1.0" && len(got.trailer) > 0 {
			t.Errorf("%s: the replay of a response in HTTP/2 is %.500q in HTTP/%s", path, got, again)
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
		"/type": func(w http.ResponseWriter) { w.Header()["Content-Type"] = nil; _, _ = io.WriteString(w, html) },
		"/both": func(w http.ResponseWriter) {
			w.Header()["Date"], w.Header()["Content-Type"] = nil, []string{}
			_, _ = io.WriteString(w, html)
		},
		"/outer":   func(w http.ResponseWriter) { w.Header()["X-Outer"] = nil; w.WriteHeader(http.StatusCreated) },
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
		"/long": func(w http.ResponseWriter) {
			w.Header()["Date"], w.Header()["Content-Type"] = nil, nil
			_, _ = io.WriteString(w, strings.Repeat(html, 1000))
			w.Header().Set("Date", "x")
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

// A3: trailers, and the length of a body, in each version of HTTP.
func TestA3Trailers(t *testing.T) {
	t.Parallel()
	const announce, prefix = "Trailer", http.TrailerPrefix
	bodies := map[string]func(http.ResponseWriter){
		"none":      func(http.ResponseWriter) {},
		"short":     func(w http.ResponseWriter) { _, _ = io.WriteString(w, "short") },
		"long":      func(w http.ResponseWriter) { _, _ = io.WriteString(w, strings.Repeat("long", 1000)) },
		"flushed":   func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
		"204":       func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) },
		"304":       func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotModified) },
		"205":       func(w http.ResponseWriter) { w.WriteHeader(http.StatusResetContent) },
		"204-write": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent); _, _ = io.WriteString(w, "no") },
		"declared": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "8")
			_, _ = io.WriteString(w, "declared")
		},
	}
	b := bare{}
	for body, write := range bodies {
		trailing := func(name string, before, after func(http.Header)) {
			b["/"+body+"/"+name] = func(w http.ResponseWriter) {
				before(w.Header())
				write(w)
				after(w.Header())
			}
		}
		none := func(http.Header) {}
		sum := func(h http.Header) { h.Set("X-Sum", "1") }
		trailing("no-trailer", none, none)
		trailing("announced", func(h http.Header) { h.Set(announce, "X-Sum") }, sum)
		trailing("in-vain", func(h http.Header) { h.Set(announce, "X-Sum") }, none)
		trailing("twice", func(h http.Header) { h.Set(announce, "X-Sum, x-sum") }, sum)
		trailing("twice-lines", func(h http.Header) { h[announce] = []string{"X-Sum", "X-Other,X-Sum"} }, func(h http.Header) { h["X-Sum"] = []string{"1", "2"} })
		trailing("set-before", func(h http.Header) { h.Set(announce, "X-Sum"); sum(h) }, none)
		trailing("changed", func(h http.Header) { h.Set(announce, "X-Sum"); sum(h) }, func(h http.Header) { h.Set("X-Sum", "2") })
		trailing("prefixed", none, func(h http.Header) { h.Set(prefix+"X-Sum", "1") })
		trailing("prefixed-before", func(h http.Header) { h.Set(prefix+"X-Sum", "1") }, none)
		trailing("prefixed-lower", none, func(h http.Header) { h[prefix+"x-sum"] = []string{"1"} })
		trailing("both", func(h http.Header) { h.Set(announce, "X-Sum") }, func(h http.Header) { sum(h); h.Set(prefix+"X-Sum", "2") })
		trailing("other-case", func(h http.Header) { h.Set(announce, "x-sum") }, func(h http.Header) { h["x-sum"] = []string{"1"} })
		trailing("of-another", func(h http.Header) { h.Set(announce, "X-Other") }, sum)
	}
	b.check(t)
}
