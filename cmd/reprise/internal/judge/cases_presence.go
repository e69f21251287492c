package judge

import (
	"net/http"
	"strings"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

var presenceCases = []Case{
	{
		ID: "presence/missing", Sentence: "Where a key is required, its absence is answered 400.",
		Source: "draft 2.7; R10; ACP 6.1", Levels: Levels{Should, Must, None, Must},
		run: func(e *env) {
			if e.options.Profile != ACP && e.facts.have&required == 0 {
				e.skip("%s", reasons[required])
			}
			e.refuses(e.unkeyed(), http.StatusBadRequest)
		},
	},
	{
		ID: "presence/link", Sentence: "The 400 for an absent key links to documentation, in a Link field or in its body.",
		Source: "draft 2.7; R10", Levels: Levels{Should, Must, None, None}, needs: required,
		run: func(e *env) {
			a := e.refuses(e.unkeyed(), http.StatusBadRequest)
			if !linked(a) {
				e.fail("neither a Link with rel=describedby or help, nor a link in the body: %v", a)
			}
		},
	},
	{
		ID: "presence/optional", Sentence: "Where a key is optional, two requests without one both run.",
		Source: "R10; Stripe, Idempotent requests", Levels: Levels{Should, Must, Must, None}, needs: optional,
		run: func(e *env) {
			e.separate(e.unkeyed(), e.first(e.unkeyed()), "a request without a key is a request of its own")
		},
	},
	{
		ID: "presence/marker", Sentence: "A request without a key, and a first run, carry no Idempotent-Replayed: true.",
		Source: "R10, R11", Levels: Levels{None, Must, Should, Should},
		run: func(e *env) {
			for _, c := range []wire.Call{e.unkeyed(), e.post()} {
				if a := e.ask(c); strings.EqualFold(a.Header.Get(replayed), "true") {
					e.fail("%s: the answer says that it is a replay", describe(c, e.options.Header))
				}
			}
		},
	},
}

// replayed is the field that marks replays.
const replayed = "Idempotent-Replayed"

// linked reports whether an answer leads to documentation.
func linked(a *wire.Answer) bool {
	for _, link := range a.Values("Link") {
		if strings.Contains(link, "describedby") || strings.Contains(link, "help") {
			return true
		}
	}
	return strings.Contains(a.Body, "https://") || strings.Contains(a.Body, "http://")
}
