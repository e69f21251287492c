package judge

import (
	"net/http"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

var bindingCases = []Case{
	{
		ID: "binding/refused", Sentence: "A key that comes back with another body is refused: the request does not run and does not get the other's answer.",
		Source: "draft 2.2, 2.7; R22; Stripe, Idempotent requests; ACP 6.4", Levels: Levels{Must, Must, Must, Must},
		run: func(e *env) {
			c := e.post()
			first := e.first(c)
			switch a := e.ask(c.WithBody(e.options.Another)); {
			case e.ran(first, a):
				e.fail("it ran: %v", a)
			case a.Status/100 != 4:
				e.fail("it is answered %v, want a 4xx", a)
			}
		},
	},
	{
		ID: "binding/422", Sentence: "The refusal is 422.",
		Source: "draft 2.7; R22; ACP 6.4", Levels: Levels{Should, Must, None, Must},
		run: func(e *env) {
			c := e.post()
			e.first(c)
			e.refuses(c.WithBody(e.options.Another), http.StatusUnprocessableEntity)
		},
	},
	{
		ID: "binding/kept", Sentence: "The refused request leaves the first answer as it was: a retry of the first request gets it.",
		Source: "R22", Levels: Levels{Must, Must, Must, Must},
		run: func(e *env) {
			c := e.post()
			first := e.first(c)
			e.ask(c.WithBody(e.options.Another))
			e.replays(c, first)
		},
	},
	{
		ID: "binding/query", Sentence: "A key that comes back with another query is refused.",
		Source: "R24", Levels: Levels{None, Must, Should, None},
		run: func(e *env) {
			c := e.post()
			first := e.first(c)
			separator := "?"
			if strings.Contains(c.Target, "?") {
				separator = "&"
			}
			if a := e.ask(c.WithTarget(c.Target + separator + "judge=1")); e.ran(first, a) || a.Status/100 != 4 {
				e.fail("it is answered %v, want a 4xx", a)
			}
		},
	},
	{
		ID: "binding/headers", Sentence: "Fields that say nothing of the operation (User-Agent, Accept, Date, tracing) do not make a retry another request.",
		Source: "draft 2.4; R25; ACP 6.2", Levels: Levels{Must, Must, Must, Must},
		run: func(e *env) {
			c := e.post()
			first := e.first(c)
			for _, changed := range []wire.Call{
				c.With("User-Agent", "judge/"+uuid()).With("Accept", "text/plain, */*;q=0.1").With("Accept-Language", "fr"),
				c.With("Date", "Thu, 01 Jan 2026 00:00:00 GMT").With("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
				e.reversed(c),
			} {
				e.replays(changed, first)
			}
		},
	},
	{
		ID: "binding/framing", Sentence: "A retry in chunks is the same request as one with a length.",
		Source: "RFC 9112 6; R25", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			c := e.post()
			e.replays(c.InChunks(), e.first(c))
		},
	},
	{
		ID: "binding/running", Sentence: "A key that comes back with another body while the first request runs is refused for its body, not as a duplicate, and does not run.",
		Source: "draft 2.7; R22; ACP 6.4", Levels: Levels{May, Must, None, Should}, needs: delay,
		run: func(e *env) {
			one, two := e.overlap(func() (wire.Call, wire.Call) {
				c := e.post()
				return c, c.WithBody(e.options.Another)
			})
			if !one.OK() {
				one, two = two, one // they changed places on their way
			}
			if !one.OK() || two.Status/100 != 4 || two.Status == http.StatusConflict {
				e.fail("of the two one is answered %v and the other %v, want a run and 422", one, two)
			}
		},
	},
	{
		ID: "binding/endpoint", Sentence: "The same key at another endpoint is another key.",
		Source: "ACP 6.1", Levels: Levels{None, None, None, Must}, needs: otherEndpoint,
		run: func(e *env) {
			c := e.post()
			first := e.first(c)
			there := e.askAt(e.options.Other, c.At(e.options.Other))
			if !there.OK() || e.facts.mark == "" && there.Body == first.Body {
				e.fail("the other endpoint answers %v", there)
			}
			e.replays(c, first)
		},
	},
	{
		ID: "binding/json", Sentence: "The order of a JSON object's members, white space, and 1.0 for 1 do not make a retry another request.",
		Source: "ACP 6.2", Levels: Levels{None, None, None, Must},
		run: func(e *env) {
			c := e.post().WithBody(`{"judge":"a","n":1,"list":[1,2]}`)
			first := e.first(c)
			for _, body := range []string{`{"list":[1,2],"n":1,"judge":"a"}`, " {\n\t\"judge\" : \"a\", \"n\" : 1, \"list\" : [1, 2]} ", `{"judge":"a","n":1.0,"list":[1,2]}`} {
				e.replays(c.WithBody(body), first)
			}
		},
	},
	{
		ID: "binding/null", Sentence: "A JSON null is not an absent member, and the order of arrays counts: both are refused as another request.",
		Source: "ACP 6.2", Levels: Levels{None, None, None, Must},
		run: func(e *env) {
			c := e.post().WithBody(`{"judge":"a","list":[1,2]}`)
			e.first(c)
			for _, body := range []string{`{"judge":"a","list":[1,2],"extra":null}`, `{"judge":"a","list":[2,1]}`} {
				e.refuses(c.WithBody(body), http.StatusUnprocessableEntity)
			}
		},
	},
}

// reversed returns the request with its field lines in the opposite order.
func (e *env) reversed(c wire.Call) wire.Call {
	c.Fields = slices.Clone(c.Fields)
	slices.Reverse(c.Fields)
	return c
}
