package judge

import (
	"net/http"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

var methodCases = []Case{
	{
		ID: "methods/safe", Sentence: "GET, HEAD and OPTIONS are answered as without a key, also with a key that a POST used.",
		Source: "draft 1; R9; Stripe, Idempotent requests", Levels: Levels{Should, Must, Must, Should},
		run: func(e *env) {
			c := e.post()
			e.first(c)
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
				e.passes(method, c.Value(e.options.Header))
				e.passes(method, e.form(uuid()))
			}
		},
	},
	{
		ID: "methods/malformed", Sentence: "A malformed key on GET is ignored like any other.",
		Source: "R9", Levels: Levels{None, Must, May, None},
		run: func(e *env) { e.passes(http.MethodGet, `"open`) },
	},
	{
		ID: "methods/patch", Sentence: "PATCH is protected as POST is.",
		Source: "draft 1; R9", Levels: Levels{Should, Must, None, None}, needs: patch,
		run: func(e *env) {
			c := e.post().WithMethod(http.MethodPatch)
			e.replays(c, e.first(c))
		},
	},
	{
		ID: "methods/bound", Sentence: "A key that comes back with another method is refused.",
		Source: "R24", Levels: Levels{None, Must, None, None}, needs: patch,
		run: func(e *env) {
			c, first := e.answered()
			e.unlike(c.WithMethod(http.MethodPatch), first)
		},
	},
}

// passes demands that requests with a safe method and a key are answered as those
// without: twice, since a middleware may answer the second from a record.
func (e *env) passes(method, key string) {
	c := e.unkeyed().WithMethod(method).WithBody("").Without("Content-Type")
	plain := e.ask(c)
	var before *wire.Answer
	for range 2 {
		a := e.ask(e.keyed(c, key))
		if a.Status != plain.Status || a.Header.Get(replayed) != plain.Header.Get(replayed) {
			e.fail("%s without a key is answered %d, and with the key %q %d (%s: %q)", method, plain.Status, key, a.Status, replayed, a.Header.Get(replayed))
		}
		if before != nil && e.facts.mark != "" && e.mark(before) != "" && !e.ran(before, a) {
			e.fail("the second %s with the key %q was answered by the first", method, key)
		}
		before = a
	}
}
