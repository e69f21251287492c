package broken

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/reprise-go/reprise/core/protocol"
)

// Scope names the principal of a request, as the adapter for net/http asks for it.
type Scope = func(*http.Request) (string, error)

// Middleware returns an adapter for net/http with a flaw. Without one it keeps every rule
// that net/http can show.
func Middleware(flaw Flaw) func(*protocol.Guard, Scope) func(http.Handler) http.Handler {
	return func(guard *protocol.Guard, scope Scope) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			a := &adapter{guard: guard, scope: scope, next: next, pass: next, sent: make(map[string]http.Header), finish: (*protocol.Recorder).Finish}
			for _, f := range adapterFlaws {
				if f.Flaw == flaw {
					f.wrong(a)
				}
			}
			return a
		}
	}
}

// adapter is an adapter for net/http, which a flaw changes. The functions that are nil do
// nothing.
type adapter struct {
	guard *protocol.Guard
	scope Scope
	next  http.Handler
	pass  http.Handler // of requests that the guard does not decide about

	reads   func(r *http.Request)                         // before the guard is asked
	tells   func(q *protocol.Request, r *http.Request)    // changes what it is told
	runs    protocol.Code                                 // the refusal that does not keep the handler from running
	begins  func(inner, r *http.Request) *http.Request    // changes the request of the handler
	panics  func(rec *protocol.Recorder, r *http.Request) // when the handler does
	returns func(w *writer)                               // when the handler does
	finish  func(rec *protocol.Recorder)                  // after that
	sends   func(h http.Header)                           // changes the header of a first response
	replies func(r *protocol.Response)                    // changes a response that no handler wrote
	answers func(w *answer)                               // changes its header, and its status

	oneStatus, hidesLength, stringsPass, copiesPass, holdsFlushes, hijacksUntold bool // of its writer

	mu   sync.Mutex
	sent map[string]http.Header // the header of the first response, by key
}

// ServeHTTP implements [http.Handler].
func (a *adapter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.reads != nil {
		a.reads(r)
	}
	admission := a.guard.Admit(r.Context(), a.request(r), func() (string, error) { return a.scope(r) })
	media, _ := admission.Response.Header.Get("Content-Type")
	refused := !admission.Pass && admission.Exchange == nil && media == "application/problem+json"
	switch {
	case refused && a.runs != "" && bytes.Contains(admission.Response.Body, []byte(a.runs)):
		a.next.ServeHTTP(w, r)
	case admission.Pass:
		if admission.Body != nil {
			r.Body = admission.Body
		}
		a.pass.ServeHTTP(w, r)
	case admission.Exchange != nil:
		a.run(w, r, admission.Exchange) //nolint:contextcheck // an exchange has its own
	default:
		if a.replies != nil {
			a.replies(&admission.Response)
		}
		admission.Response.Write(w.Header(), &answer{ResponseWriter: w, a: a, r: r, problem: refused})
	}
}

// request returns the parts of r that the protocol reads.
func (a *adapter) request(r *http.Request) protocol.Request {
	q := protocol.Request{
		Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Target: r.RequestURI,
		Host: r.Host, Header: r.Header, HTTP10: !r.ProtoAtLeast(1, 1), Body: r.Body, Length: r.ContentLength,
		TooLarge: func(err error) bool {
			var limit *http.MaxBytesError
			return errors.As(err, &limit)
		},
	}
	if a.tells != nil {
		a.tells(&q, r)
	}
	return q
}

// run runs the handler in an exchange.
func (a *adapter) run(w http.ResponseWriter, r *http.Request, x *protocol.Exchange) {
	inner := r.WithContext(x.Context())
	inner.Body = x.Body()
	own := &writer{ResponseWriter: w, a: a, rec: new(protocol.Recorder), r: inner}
	own.rec.Start(x, w.Header(), wire{w, a}, http.DetectContentType)
	defer own.rec.Close()
	if a.panics != nil {
		defer func() {
			if p := recover(); p != nil {
				a.panics(own.rec, own.r)
				panic(p)
			}
		}()
	}
	if a.begins != nil {
		inner = a.begins(inner, r)
	}
	a.next.ServeHTTP(own, inner)
	if a.returns != nil {
		a.returns(own)
	}
	a.finish(own.rec)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent[r.Header.Get("Idempotency-Key")] = w.Header().Clone()
}

// answer writes responses that no handler wrote.
type answer struct {
	http.ResponseWriter

	a       *adapter
	r       *http.Request
	problem bool
	first   http.Header // of the first response to the key
	status  int
}

// WriteHeader implements [protocol.Wire].
func (w *answer) WriteHeader(status int) {
	w.a.mu.Lock()
	w.first, w.status = w.a.sent[w.r.Header.Get("Idempotency-Key")], status
	w.a.mu.Unlock()
	if w.a.answers != nil {
		w.a.answers(w)
	}
	w.ResponseWriter.WriteHeader(w.status)
}

// wire is the way of a first response to its client.
type wire struct {
	http.ResponseWriter

	a *adapter
}

// hiddenLength is where an adapter that hides the length from the recorder keeps it.
const hiddenLength = "X-Hidden-Length"

// WriteHeader implements [protocol.Wire].
func (w wire) WriteHeader(status int) {
	h := w.Header()
	if w.a.hidesLength {
		moves(h, hiddenLength, "Content-Length")
	}
	if w.a.sends != nil {
		w.a.sends(h)
	}
	w.ResponseWriter.WriteHeader(status)
}

func moves(h http.Header, from, to string) {
	if value := h.Get(from); value != "" {
		h.Set(to, value)
		h.Del(from)
	}
}

// writer is the http.ResponseWriter of a handler that is recorded.
type writer struct {
	http.ResponseWriter

	a   *adapter
	rec *protocol.Recorder
	r   *http.Request // of the handler

	status, size int
	left         bool // a write failed
	reported     bool
}

// WriteHeader implements [http.ResponseWriter].
func (w *writer) WriteHeader(status int) {
	if w.a.oneStatus && w.status != 0 {
		return
	}
	w.status = status
	if w.a.hidesLength {
		moves(w.Header(), "Content-Length", hiddenLength)
	}
	w.rec.WriteHeader(status)
}

// Report is where handlers report errors that are not their response.
func (w *writer) Report(error) { w.reported = true }

// Write implements [io.Writer].
func (w *writer) Write(p []byte) (int, error) {
	w.size += len(p)
	n, err := w.rec.Write(p)
	w.left = w.left || err != nil
	return n, err
}

// WriteString implements [io.StringWriter].
func (w *writer) WriteString(s string) (int, error) {
	if w.a.stringsPass {
		return io.WriteString(w.ResponseWriter, s)
	}
	return w.rec.WriteString(s)
}

// ReadFrom implements [io.ReaderFrom].
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	if w.a.copiesPass {
		return io.Copy(w.ResponseWriter, r)
	}
	return io.Copy(struct{ io.Writer }{w.rec}, r)
}

// FlushError implements [http.ResponseController.Flush].
func (w *writer) FlushError() error {
	if w.a.holdsFlushes || !w.rec.Flush() {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack implements [http.Hijacker].
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && !w.a.hijacksUntold {
		w.rec.Hijack()
	}
	return conn, rw, err
}
