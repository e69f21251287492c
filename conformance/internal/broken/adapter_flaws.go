package broken

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing/iotest"

	"github.com/reprise-go/reprise/core/protocol"
)

// Adapters returns every adapter with a flaw. [Middleware] names a flaw by its text, and
// no case rejects one that it does not know.
func Adapters() []Mutant {
	all := make([]Mutant, len(adapterFlaws))
	for i, f := range adapterFlaws {
		all[i] = f.Mutant
	}
	return all
}

type adapterFlaw struct {
	Mutant

	wrong func(*adapter)
}

// adapts is a flaw of an adapter.
func adapts(flaw Flaw, does, rejectedBy string, wrong func(*adapter)) adapterFlaw {
	return adapterFlaw{Mutant{flaw, does, rejectedBy}, wrong}
}

// tells changes what the guard is told of a request.
func tells(change func(q *protocol.Request, r *http.Request)) func(*adapter) {
	return func(a *adapter) { a.tells = change }
}

// names changes the principal that the scope function names, or its error.
func names(change func(scope string, err error) (string, error)) func(*adapter) {
	return func(a *adapter) {
		right := a.scope
		a.scope = func(r *http.Request) (string, error) { return change(right(r)) }
	}
}

// readsAll reads the whole body in advance, and leaves one that ends in the same way.
func readsAll(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	rest := io.Reader(bytes.NewReader(body))
	if err != nil {
		rest = io.MultiReader(rest, iotest.ErrReader(err))
	}
	r.Body = io.NopCloser(rest)
}

// passes changes how requests pass that the guard does not decide about.
func passes(change func(w http.ResponseWriter, r *http.Request, next http.Handler)) func(*adapter) {
	return func(a *adapter) {
		a.pass = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { change(w, r, a.next) })
	}
}

// runs is an adapter whose handler runs in spite of a refusal.
func runs(code protocol.Code) func(*adapter) { return func(a *adapter) { a.runs = code } }

// begins changes the request of a handler.
func begins(change func(inner, r *http.Request) *http.Request) func(*adapter) {
	return func(a *adapter) { a.begins = change }
}

// decidesOn takes a decision on some responses of handlers.
func decidesOn(when func(*writer) bool, decision func(context.Context) bool) func(*adapter) {
	return func(a *adapter) {
		a.returns = func(w *writer) {
			if when(w) {
				decision(w.r.Context())
			}
		}
	}
}

func sends(change func(http.Header)) func(*adapter) { return func(a *adapter) { a.sends = change } }

func replies(change func(*protocol.Response)) func(*adapter) {
	return func(a *adapter) { a.replies = change }
}

func answers(change func(w *answer, h http.Header)) func(*adapter) {
	return func(a *adapter) { a.answers = func(w *answer) { change(w, w.Header()) } }
}

// loses drops a field of replays.
func loses(field string) func(*adapter) {
	return answers(func(_ *answer, h http.Header) { h.Del(field) })
}

var adapterFlaws = []adapterFlaw{
	// Flaws in how an adapter reads the request.
	adapts("first-line-only", "looks at the first line with a key", "R6a", tells(func(q *protocol.Request, r *http.Request) {
		h := r.Header.Clone()
		h["Idempotency-Key"] = h["Idempotency-Key"][:min(1, len(h["Idempotency-Key"]))]
		q.Header = h
	})),
	adapts("malformed-as-absent", "runs a request with a malformed key as one without", "R6a", runs(protocol.CodeKeyInvalid)),
	adapts("empty-field-is-none", "takes an empty field for an absent one", "R6a", tells(func(q *protocol.Request, r *http.Request) {
		if r.Header.Get("Idempotency-Key") == "" {
			q.Header = http.Header{}
		}
	})),
	adapts("keys-every-method", "protects GET", "R9a", tells(func(q *protocol.Request, _ *http.Request) { q.Method = http.MethodPost })),
	adapts("reads-first", "reads the body before it knows whether there is a key", "R1e", func(a *adapter) { a.reads = readsAll }),
	adapts("merges-trailers", "takes trailers for fields of the header", "R7a", func(a *adapter) {
		a.reads = func(r *http.Request) { readsAll(r); maps.Copy(r.Header, r.Trailer) }
	}),
	adapts("scope-in-trailers", "lets the scope function see trailers", "R7c", func(a *adapter) {
		right := a.scope
		a.reads = readsAll
		a.scope = func(r *http.Request) (string, error) {
			r = r.Clone(r.Context())
			maps.Copy(r.Header, r.Trailer)
			return right(r)
		}
	}),
	adapts("decodes-path", "decodes the path", "R24b", tells(func(q *protocol.Request, r *http.Request) { q.Path, q.Target = r.URL.Path, "" })),
	adapts("forgets-query", "forgets the query", "R24a", tells(func(q *protocol.Request, _ *http.Request) { q.RawQuery, q.Target = "", "" })),
	adapts("forgets-scope", "has one key space for all", "R7c", names(func(string, error) (string, error) { return "", protocol.ErrUnscoped })),
	adapts("defaults-scope", "shares a key space among those that it cannot name", "R44", names(func(scope string, err error) (string, error) {
		if err != nil {
			return "", protocol.ErrUnscoped
		}
		return scope, nil
	})),
	adapts("cleans-scope", "drops the control bytes of a principal's name", "R44",
		names(func(scope string, err error) (string, error) { return strings.ReplaceAll(scope, "\t", ""), err })),
	adapts("forgets-host", "does not tell which host was asked", "R24g", tells(func(q *protocol.Request, _ *http.Request) { q.Host = "" })),
	adapts("forgets-boundary", "does not tell the parameters of the media type", "R24h", tells(func(q *protocol.Request, r *http.Request) {
		h := r.Header.Clone()
		for i, line := range h["Content-Type"] {
			h["Content-Type"][i], _, _ = strings.Cut(line, ";")
		}
		q.Header = h
	})),
	adapts("forgets-limit", "takes the limit of an outer layer for a broken body", "R26e",
		tells(func(q *protocol.Request, _ *http.Request) { q.TooLarge = func(error) bool { return false } })),
	adapts("forgets-length", "does not tell which length was declared", "R50a", tells(func(q *protocol.Request, _ *http.Request) { q.Length = 0 })),
	adapts("hides-fields", "shows the policy no field but the protocol's own", "R24g", tells(func(q *protocol.Request, r *http.Request) {
		few := http.Header{}
		for _, name := range []string{"Idempotency-Key", "Content-Type", "Content-Encoding"} {
			few[name] = r.Header[name]
		}
		q.Header = few
	})),
	adapts("marks-unkeyed", "marks answers to requests without a key", "R10b", passes(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		w.Header().Set(protocol.FieldStatus, "unprotected")
		next.ServeHTTP(w, r)
	})),
	adapts("recovers-unkeyed", "swallows the panics of handlers without a key", "T7", passes(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		defer func() { _ = recover() }()
		next.ServeHTTP(w, r)
	})),

	// Flaws of how an adapter runs the handler.
	adapts("clients-context", "cancels the handler when the client leaves", "R23a",
		begins(func(inner, r *http.Request) *http.Request { return inner.WithContext(r.Context()) })),
	adapts("drains-body", "gives the handler the body that it has read itself", "R27c", begins(func(inner, r *http.Request) *http.Request {
		inner.Body = r.Body
		return inner
	})),
	adapts("finishes-panics", "records what a handler that panicked has written", "R33a", func(a *adapter) {
		a.panics = func(rec *protocol.Recorder, _ *http.Request) { rec.Finish() }
	}),
	adapts("sends-first", "sends the answer before it is recorded", "R41a", func(a *adapter) { a.returns = func(w *writer) { w.rec.Flush() } }),
	adapts("informational-is-final", "takes 103 for the final status", "R17b", func(a *adapter) { a.oneStatus = true }),
	adapts("strings-pass", "lets strings go past what it captures", "R12c", func(a *adapter) { a.stringsPass = true }),
	adapts("copies-pass", "lets io.Copy go past what it captures", "R12c", func(a *adapter) { a.copiesPass = true }),
	adapts("swallows-flush", "holds a stream back", "R34a", func(a *adapter) { a.holdsFlushes = true }),
	adapts("hijacks-untold", "records an answer for a connection that the handler has taken", "R34f", func(a *adapter) { a.hijacksUntold = true }),
	adapts("keeps-everything", "keeps every answer, whatever its status", "R31b", begins(func(inner, _ *http.Request) *http.Request {
		protocol.Keep(inner.Context())
		return inner
	})),
	adapts("status-is-no-answer", "takes a 203 that nothing follows for no answer", "R33e",
		decidesOn(func(w *writer) bool { return w.status == http.StatusNonAuthoritativeInfo && w.size == 0 }, protocol.Release)),
	adapts("report-is-no-answer", "takes an answer beside a reported error for none", "R33f",
		decidesOn(func(w *writer) bool { return w.reported }, protocol.Release)),
	adapts("hides-length", "does not let the recorder see the declared length", "R33g", func(a *adapter) { a.hidesLength = true }),
	adapts("swallows-policy", "swallows the panic of a function of the policy", "R33c", func(a *adapter) {
		a.finish = func(rec *protocol.Recorder) {
			defer func() { _ = recover() }()
			rec.Finish()
		}
	}),
	adapts("forgets-expiry", "does not say until when a response is replayed", "R13a", sends(func(h http.Header) { h.Del(protocol.FieldExpires) })),
	adapts("promises-expiry", "says of every response until when it is replayed", "R13a",
		sends(func(h http.Header) { h.Set(protocol.FieldExpires, "@4102444800") })),
	adapts("runs-expired", "runs a request again whose result has expired", "R22b", runs(protocol.CodeResultExpired)),
	adapts("one-link", "sends the last link only", "R13a", sends(func(h http.Header) {
		if links := h["Link"]; len(links) > 1 {
			h["Link"] = links[len(links)-1:]
		}
	})),
	adapts("runs-unreadable", "runs the handler where the record cannot be read", "R24c", runs(protocol.CodeRecordCorrupt)),
	adapts("releases-timeouts", "releases every 408, whatever the preset", "R31b",
		decidesOn(func(w *writer) bool { return w.status == http.StatusRequestTimeout }, protocol.Release)),
	adapts("decides-blindly", "does not let the policy see the body that it decides about", "R12c", func(a *adapter) {
		decide := a.guard.Config().Keep.Decide
		if decide == nil {
			return
		}
		var err error
		a.guard, err = a.guard.With(func(c *protocol.Config) {
			c.Keep.Decide = func(e protocol.Ending) protocol.Decision { return decide(protocol.Ending{Status: e.Status}) }
		})
		if err != nil {
			panic(err) // the guard was made from a valid configuration
		}
	}),
	adapts("releases-unknown", "releases every 504, whatever its handler says", "R52c",
		decidesOn(func(w *writer) bool { return w.status == http.StatusGatewayTimeout }, protocol.Release)),
	adapts("keeps-unknown", "keeps every 202, whatever its handler says", "R52c",
		decidesOn(func(w *writer) bool { return w.status == http.StatusAccepted }, protocol.Keep)),
	adapts("forgets-unknown", "lets a panic undo what its handler said", "R52c", func(a *adapter) {
		a.panics = func(_ *protocol.Recorder, inner *http.Request) { protocol.Release(inner.Context()) }
	}),
	adapts("releases-left", "takes an answer for cut short because its client left", "R35n",
		decidesOn(func(w *writer) bool { return w.left }, protocol.Release)),
	adapts("hides-run", "gives the layers inside a context that does not show its run", "R51a",
		begins(func(inner, r *http.Request) *http.Request {
			return inner.WithContext(context.WithoutCancel(r.Context()))
		})),
	adapts("runs-nested", "runs the handler where another guard decides about the request", "R51b", runs(protocol.CodeInternalError)),
	adapts("passes-drained", "passes a request without the body that was read for its key", "R48b",
		passes(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			_, _ = io.Copy(io.Discard, r.Body)
			next.ServeHTTP(w, r)
		})),
	adapts("rewrites-query", "gives the handler a query that it has put in order", "R27d", begins(func(inner, _ *http.Request) *http.Request {
		inner.URL.RawQuery = inner.URL.Query().Encode()
		return inner
	})),

	// Flaws of how an adapter answers instead of the handler.
	adapts("replays-unmarked", "replays without a mark", "R15", loses(protocol.FieldReplayed)),
	adapts("replays-ok", "replays every status as 200", "T1", answers(func(w *answer, _ http.Header) {
		if !w.problem {
			w.status = http.StatusOK
		}
	})),
	adapts("replays-cookies", "replays Set-Cookie", "R14b",
		answers(func(w *answer, h http.Header) { h["Set-Cookie"] = append(h["Set-Cookie"], w.first["Set-Cookie"]...) })),
	adapts("repeats-request-id", "adds the X-Request-Id of the first answer to the replay's own", "R13b",
		answers(func(w *answer, h http.Header) {
			h["X-Request-Id"] = append(h["X-Request-Id"], w.first["X-Request-Id"]...)
		})),
	adapts("repeats-date", "replays the date of the first answer", "R15", answers(func(w *answer, h http.Header) {
		if date := w.first["Date"]; date != nil {
			h["Date"] = date
		}
	})),
	adapts("joins-lines", "joins the lines of a field", "R13a", answers(func(_ *answer, h http.Header) {
		for name, values := range h {
			if len(values) > 1 {
				h.Set(name, strings.Join(values, ", "))
			}
		}
	})),
	adapts("loses-coding", "replays a compressed body without its coding", "R19", loses("Content-Encoding")),
	adapts("repeats-hop", "replays what Connection names", "R14b", answers(func(w *answer, h http.Header) {
		for _, name := range w.first["Connection"] {
			h[name] = w.first[name]
		}
	})),
	adapts("caches-problems", "lets its problems be cached", "R22b", loses("Cache-Control")),
	adapts("forgets-removal", "leaves what the handler removed on a replay", "R13g", answers(func(w *answer, h http.Header) {
		if !w.problem && h["Set-Cookie"] != nil { // there is an outer layer
			h.Set("X-Powered-By", "outer")
		}
	})),
	adapts("drops-cleaned", "replays no field that had a line end in its value", "R13h", answers(func(_ *answer, h http.Header) {
		maps.DeleteFunc(h, func(_ string, values []string) bool { return len(values) > 0 && strings.Contains(values[0], "  ") })
	})),
	adapts("loses-type", "replays a body without its media type", "R16b", answers(func(_ *answer, h http.Header) { h["Content-Type"] = nil })),
	adapts("loses-length", "replays without a length", "R14f", loses("Content-Length")),
	adapts("loses-trailers", "replays without the trailers", "R17d", replies(func(r *protocol.Response) { r.Trailer = protocol.Header{} })),
	adapts("forgets-streams", "looks for the body of a replay in memory only", "R35f", replies(func(r *protocol.Response) {
		if r.Stream != nil {
			_ = r.Stream.Close()
			r.Stream = nil
		}
	})),
	adapts("leaves-streams", "does not close the stream of a replay", "R35l", replies(func(r *protocol.Response) {
		if r.Stream != nil {
			r.Stream = io.NopCloser(r.Stream)
		}
	})),
	adapts("tells-key", "puts the key into its problems", "R22b",
		answers(func(w *answer, h http.Header) { h.Set("X-Refused-Key", w.r.Header.Get("Idempotency-Key")) })),
}
