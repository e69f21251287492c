package broken

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/reprise-go/reprise/core/protocol"
)

// Scope names the principal of a request, as the adapter for net/http asks for it.
type Scope = func(*http.Request) (string, error)

// Middleware returns an adapter for net/http with a flaw. Without one it keeps every rule
// that net/http can show.
func Middleware(flaw Flaw) func(*protocol.Guard, Scope) func(http.Handler) http.Handler {
	return func(guard *protocol.Guard, scope Scope) func(http.Handler) http.Handler {
		guard = policyWith(flaw, guard)
		return func(next http.Handler) http.Handler {
			return &adapter{flaw: flaw, guard: guard, scope: scope, next: next, sent: make(map[string]http.Header)}
		}
	}
}

// policyWith returns a guard that decides without the body, if that is the flaw.
func policyWith(flaw Flaw, guard *protocol.Guard) *protocol.Guard {
	decide := guard.Config().Keep.Decide
	if flaw != "decides-blindly" || decide == nil {
		return guard
	}
	other, err := guard.With(func(c *protocol.Config) {
		c.Keep.Decide = func(e protocol.Ending) protocol.Decision { return decide(protocol.Ending{Status: e.Status}) }
	})
	if err != nil {
		panic(err) // the guard was made from a valid configuration
	}
	return other
}

// adapter is an adapter for net/http, and wrong in one way.
type adapter struct {
	flaw  Flaw
	guard *protocol.Guard
	scope Scope
	next  http.Handler

	mu   sync.Mutex
	sent map[string]http.Header // the header of the first response, by key
}

func (a *adapter) has(flaw Flaw) bool { return a.flaw == flaw }

// ServeHTTP implements [http.Handler].
func (a *adapter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.has("reads-first") || a.has("merges-trailers") || a.has("scope-in-trailers") {
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), errorReader{err}))
	}
	if a.has("merges-trailers") {
		for name, values := range r.Trailer {
			r.Header[name] = append(r.Header[name], values...)
		}
	}
	admission := a.guard.Admit(r.Context(), a.request(r), func() (string, error) { return a.principal(r) })
	refused := !admission.Pass && admission.Exchange == nil && isProblem(admission.Response)
	switch {
	case refused && a.has("runs-unreadable") && isAbout(admission.Response, protocol.CodeRecordCorrupt),
		refused && a.has("runs-expired") && isAbout(admission.Response, protocol.CodeResultExpired),
		refused && a.has("runs-nested") && isAbout(admission.Response, protocol.CodeInternalError):
		a.next.ServeHTTP(w, r)
	case admission.Pass, refused && a.has("malformed-as-absent") && isAbout(admission.Response, protocol.CodeKeyInvalid):
		if a.has("marks-unkeyed") {
			w.Header().Set(protocol.FieldStatus, "unprotected")
		}
		if a.has("recovers-unkeyed") {
			defer func() { _ = recover() }()
		}
		if admission.Body != nil && !a.has("passes-drained") {
			r.Body = admission.Body
		}
		a.next.ServeHTTP(w, r)
	case admission.Exchange != nil:
		a.run(w, r, admission.Exchange)
	default:
		if a.has("loses-trailers") {
			admission.Response.Trailer = protocol.Header{}
		}
		a.response(admission.Response).Write(w.Header(), &answer{w, a, r, refused})
	}
}

// response returns r as the adapter writes it.
func (a *adapter) response(r protocol.Response) protocol.Response {
	switch {
	case r.Stream == nil:
	case a.has("forgets-streams"):
		_ = r.Stream.Close()
		r.Stream = nil
	case a.has("leaves-streams"):
		r.Stream = io.NopCloser(r.Stream)
	}
	return r
}

// request returns the parts of r that the protocol reads.
func (a *adapter) request(r *http.Request) protocol.Request {
	req := protocol.Request{
		Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Target: r.RequestURI,
		Host: r.Host, Header: r.Header, HTTP10: !r.ProtoAtLeast(1, 1), Body: r.Body, Length: r.ContentLength,
		TooLarge: func(err error) bool {
			var limit *http.MaxBytesError
			return errors.As(err, &limit) && !a.has("forgets-limit")
		},
	}
	switch a.flaw {
	case "forgets-host":
		req.Host = ""
	case "forgets-boundary":
		h := r.Header.Clone()
		for i, line := range h["Content-Type"] {
			h["Content-Type"][i], _, _ = strings.Cut(line, ";")
		}
		req.Header = h
	case "forgets-length":
		req.Length = 0
	case "hides-fields":
		req.Header = fewFields{r.Header}
	case "keys-every-method":
		req.Method = http.MethodPost
	case "decodes-path":
		req.Path, req.Target = r.URL.Path, ""
	case "forgets-query":
		req.RawQuery, req.Target = "", ""
	case "first-line-only":
		req.Header = firstLines{r.Header}
	case "empty-field-is-none":
		if r.Header.Get("Idempotency-Key") == "" {
			req.Header = http.Header{}
		}
	default:
	}
	return req
}

// principal is the scope of r.
func (a *adapter) principal(r *http.Request) (string, error) {
	if a.has("scope-in-trailers") {
		r = r.Clone(r.Context())
		maps.Copy(r.Header, r.Trailer)
	}
	scope, err := a.scope(r)
	if a.has("forgets-scope") || a.has("defaults-scope") && err != nil {
		return "", protocol.ErrUnscoped
	}
	if a.has("cleans-scope") {
		scope = strings.ReplaceAll(scope, "\t", "")
	}
	return scope, err
}

// run runs the handler in an exchange.
func (a *adapter) run(w http.ResponseWriter, r *http.Request, x *protocol.Exchange) {
	rec := new(protocol.Recorder)
	rec.Start(x, w.Header(), a.wire(w), http.DetectContentType)
	defer rec.Close() //nolint:contextcheck // an exchange has its own
	if a.has("finishes-panics") {
		defer func() { //nolint:contextcheck // an exchange has its own
			if recover() != nil {
				rec.Finish()
			}
		}()
	}
	if a.has("forgets-unknown") {
		defer func() { //nolint:contextcheck // an exchange has its own
			if p := recover(); p != nil {
				protocol.Release(x.Context())
				panic(p)
			}
		}()
	}
	inner := r.WithContext(x.Context()) //nolint:contextcheck // an exchange has its own
	inner.Body = x.Body()
	switch a.flaw {
	case "clients-context":
		inner = inner.WithContext(r.Context())
	case "hides-run":
		inner = inner.WithContext(context.WithoutCancel(r.Context()))
	case "drains-body":
		inner.Body = r.Body
	case "keeps-everything":
		protocol.Keep(x.Context()) //nolint:contextcheck // an exchange has its own
	case "rewrites-query":
		inner.URL.RawQuery = inner.URL.Query().Encode()
	default:
	}
	own := a.writer(w, rec)
	a.next.ServeHTTP(own, inner)
	if a.has("status-is-no-answer") && own.status == http.StatusNonAuthoritativeInfo && own.size == 0 ||
		a.has("releases-timeouts") && own.status == http.StatusRequestTimeout || a.has("report-is-no-answer") && own.reported ||
		a.has("releases-left") && own.left {
		protocol.Release(x.Context()) //nolint:contextcheck // an exchange has its own
	}
	if a.has("releases-unknown") && own.status == http.StatusGatewayTimeout {
		protocol.Release(x.Context()) //nolint:contextcheck // an exchange has its own
	}
	if a.has("keeps-unknown") && own.status == http.StatusAccepted {
		protocol.Keep(x.Context()) //nolint:contextcheck // an exchange has its own
	}
	if a.has("sends-first") {
		rec.Flush()
	}
	a.finish(rec) //nolint:contextcheck // an exchange has its own
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent[r.Header.Get("Idempotency-Key")] = w.Header().Clone()
}

// finish ends the run of a handler that returned.
func (a *adapter) finish(rec *protocol.Recorder) {
	if a.has("swallows-policy") {
		defer func() { _ = recover() }()
	}
	rec.Finish()
}

// answer writes responses that no handler wrote.
type answer struct {
	http.ResponseWriter

	a       *adapter
	r       *http.Request
	problem bool
}

// WriteHeader implements [protocol.Wire].
func (w *answer) WriteHeader(status int) {
	h := w.Header()
	first := w.a.first(w.r)
	switch w.a.flaw {
	case "replays-unmarked":
		h.Del(protocol.FieldReplayed)
	case "replays-cookies":
		h["Set-Cookie"] = append(h["Set-Cookie"], first["Set-Cookie"]...)
	case "repeats-hop":
		for _, name := range first["Connection"] {
			h[name] = first[name]
		}
	case "repeats-request-id":
		h["X-Request-Id"] = append(h["X-Request-Id"], first["X-Request-Id"]...)
	case "repeats-date":
		if date := first["Date"]; date != nil {
			h["Date"] = date
		}
	case "joins-lines":
		for name, values := range h {
			if len(values) > 1 {
				h.Set(name, strings.Join(values, ", "))
			}
		}
	case "forgets-removal":
		if !w.problem && h["Set-Cookie"] != nil { // there is an outer layer
			h.Set("X-Powered-By", "outer")
		}
	case "drops-cleaned":
		for name, values := range h {
			if len(values) > 0 && strings.Contains(values[0], "  ") {
				h.Del(name)
			}
		}
	case "loses-type":
		h["Content-Type"] = nil
	case "loses-length":
		h.Del("Content-Length")
	case "loses-coding":
		h.Del("Content-Encoding")
	case "caches-problems":
		if w.problem {
			h.Del("Cache-Control")
		}
	case "tells-key":
		if w.problem {
			h.Set("X-Refused-Key", w.r.Header.Get("Idempotency-Key"))
		}
	case "replays-ok":
		if !w.problem {
			status = http.StatusOK
		}
	default:
	}
	w.ResponseWriter.WriteHeader(status)
}

// first returns the header of the first response to the key of r.
func (a *adapter) first(r *http.Request) http.Header {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sent[r.Header.Get("Idempotency-Key")]
}

func isProblem(r protocol.Response) bool {
	media, _ := r.Header.Get("Content-Type")
	return media == "application/problem+json"
}

// isAbout reports whether a response is the problem of a code.
func isAbout(r protocol.Response, code protocol.Code) bool {
	return bytes.Contains(r.Body, []byte(code))
}

// firstLines is a header that shows only the first line of a name.
type firstLines struct{ http.Header }

// Values returns the value of every field line called name.
func (h firstLines) Values(name string) []string {
	return h.Header.Values(name)[:min(1, len(h.Header.Values(name)))]
}

// fewFields is a header that shows only the fields that the protocol reads.
type fewFields struct{ http.Header }

// Values returns the value of every field line called name.
func (h fewFields) Values(name string) []string {
	switch name {
	case "Idempotency-Key", "Content-Type", "Content-Encoding":
		return h.Header.Values(name)
	default:
		return nil
	}
}

// errorReader ends as the body that was read ended.
type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	return 0, io.EOF
}

var errNoHijacker = errors.New("broken: the connection cannot be hijacked")

// hijack takes the connection behind w.
func hijack(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
	h, ok := w.(http.Hijacker)
	if !ok {
		return nil, nil, errNoHijacker
	}
	return h.Hijack()
}
