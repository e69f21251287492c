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
	if flaw != decidesBlindly || decide == nil {
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
	if a.has(readsFirst) || a.has(mergesTrailers) || a.has(scopeInTrailers) {
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), errorReader{err}))
	}
	if a.has(mergesTrailers) {
		for name, values := range r.Trailer {
			r.Header[name] = append(r.Header[name], values...)
		}
	}
	admission := a.guard.Admit(r.Context(), a.request(r), func() (string, error) { return a.principal(r) })
	refused := !admission.Pass && admission.Exchange == nil && isProblem(admission.Response)
	switch {
	case refused && a.has(runsUnreadable) && isAbout(admission.Response, protocol.CodeRecordCorrupt),
		refused && a.has(runsExpired) && isAbout(admission.Response, protocol.CodeResultExpired),
		refused && a.has(runsNested) && isAbout(admission.Response, protocol.CodeInternalError):
		a.next.ServeHTTP(w, r)
	case admission.Pass, refused && a.has(malformedAsAbsent) && isAbout(admission.Response, protocol.CodeKeyInvalid):
		if a.has(marksUnkeyed) {
			w.Header().Set(protocol.FieldStatus, "unprotected")
		}
		if a.has(recoversUnkeyed) {
			defer func() { _ = recover() }()
		}
		if admission.Body != nil && !a.has(passesDrained) {
			r.Body = admission.Body
		}
		a.next.ServeHTTP(w, r)
	case admission.Exchange != nil:
		a.run(w, r, admission.Exchange)
	default:
		if a.has(losesTrailers) {
			admission.Response.Trailer = protocol.Header{}
		}
		a.response(admission.Response).Write(w.Header(), &answer{w, a, r, refused})
	}
}

// response returns r as the adapter writes it.
func (a *adapter) response(r protocol.Response) protocol.Response {
	switch {
	case r.Stream == nil:
	case a.has(forgetsStreams):
		_ = r.Stream.Close()
		r.Stream = nil
	case a.has(leavesStreams):
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
			return errors.As(err, &limit) && !a.has(forgetsLimit)
		},
	}
	switch a.flaw {
	case forgetsHost:
		req.Host = ""
	case forgetsBoundary:
		h := r.Header.Clone()
		for i, line := range h["Content-Type"] {
			h["Content-Type"][i], _, _ = strings.Cut(line, ";")
		}
		req.Header = h
	case forgetsLength:
		req.Length = 0
	case hidesFields:
		req.Header = fewFields{r.Header}
	case keysEveryMethod:
		req.Method = http.MethodPost
	case decodesPath:
		req.Path, req.Target = r.URL.Path, ""
	case forgetsQuery:
		req.RawQuery, req.Target = "", ""
	case firstLineOnly:
		req.Header = firstLines{r.Header}
	case emptyFieldIsNone:
		if r.Header.Get("Idempotency-Key") == "" {
			req.Header = http.Header{}
		}
	default:
	}
	return req
}

// principal is the scope of r.
func (a *adapter) principal(r *http.Request) (string, error) {
	if a.has(scopeInTrailers) {
		r = r.Clone(r.Context())
		maps.Copy(r.Header, r.Trailer)
	}
	scope, err := a.scope(r)
	if a.has(forgetsScope) || a.has(defaultsScope) && err != nil {
		return "", protocol.ErrUnscoped
	}
	if a.has(cleansScope) {
		scope = strings.ReplaceAll(scope, "\t", "")
	}
	return scope, err
}

// run runs the handler in an exchange.
func (a *adapter) run(w http.ResponseWriter, r *http.Request, x *protocol.Exchange) {
	rec := new(protocol.Recorder)
	rec.Start(x, w.Header(), a.wire(w), http.DetectContentType)
	defer rec.Close() //nolint:contextcheck // an exchange has its own
	if a.has(finishesPanics) {
		defer func() { //nolint:contextcheck // an exchange has its own
			if recover() != nil {
				rec.Finish()
			}
		}()
	}
	if a.has(forgetsUnknown) {
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
	case clientsContext:
		inner = inner.WithContext(r.Context())
	case hidesRun:
		inner = inner.WithContext(context.WithoutCancel(r.Context()))
	case drainsBody:
		inner.Body = r.Body
	case keepsEverything:
		protocol.Keep(x.Context()) //nolint:contextcheck // an exchange has its own
	case rewritesQuery:
		inner.URL.RawQuery = inner.URL.Query().Encode()
	default:
	}
	own := a.writer(w, rec)
	a.next.ServeHTTP(own, inner)
	if a.has(statusIsNoAnswer) && own.status == http.StatusNonAuthoritativeInfo && own.size == 0 ||
		a.has(releasesTimeouts) && own.status == http.StatusRequestTimeout || a.has(reportIsNoAnswer) && own.reported ||
		a.has(releasesLeft) && own.left {
		protocol.Release(x.Context()) //nolint:contextcheck // an exchange has its own
	}
	if a.has(releasesUnknown) && own.status == http.StatusGatewayTimeout {
		protocol.Release(x.Context()) //nolint:contextcheck // an exchange has its own
	}
	if a.has(keepsUnknown) && own.status == http.StatusAccepted {
		protocol.Keep(x.Context()) //nolint:contextcheck // an exchange has its own
	}
	if a.has(sendsFirst) {
		rec.Flush()
	}
	a.finish(rec) //nolint:contextcheck // an exchange has its own
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent[r.Header.Get("Idempotency-Key")] = w.Header().Clone()
}

// finish ends the run of a handler that returned.
func (a *adapter) finish(rec *protocol.Recorder) {
	if a.has(swallowsPolicy) {
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
	case replaysUnmarked:
		h.Del(protocol.FieldReplayed)
	case replaysCookies:
		h["Set-Cookie"] = append(h["Set-Cookie"], first["Set-Cookie"]...)
	case repeatsHop:
		for _, name := range first["Connection"] {
			h[name] = first[name]
		}
	case repeatsRequestID:
		h["X-Request-Id"] = append(h["X-Request-Id"], first["X-Request-Id"]...)
	case repeatsDate:
		if date := first["Date"]; date != nil {
			h["Date"] = date
		}
	case joinsLines:
		for name, values := range h {
			if len(values) > 1 {
				h.Set(name, strings.Join(values, ", "))
			}
		}
	case forgetsRemoval:
		if !w.problem && h["Set-Cookie"] != nil { // there is an outer layer
			h.Set("X-Powered-By", "outer")
		}
	case dropsCleaned:
		for name, values := range h {
			if len(values) > 0 && strings.Contains(values[0], "  ") {
				h.Del(name)
			}
		}
	case losesType:
		h["Content-Type"] = nil
	case losesLength:
		h.Del("Content-Length")
	case losesCoding:
		h.Del("Content-Encoding")
	case cachesProblems:
		if w.problem {
			h.Del("Cache-Control")
		}
	case tellsKey:
		if w.problem {
			h.Set("X-Refused-Key", w.r.Header.Get("Idempotency-Key"))
		}
	case replaysOK:
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
