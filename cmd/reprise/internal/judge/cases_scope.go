package judge

import (
	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

var scopeCases = []Case{
	{
		ID: "scopes/independent", Sentence: "Equal keys of two principals are two keys: each request runs, and each principal gets its own replay.",
		Source: "draft 5; R43; ACP 6.1", Levels: Levels{Should, Must, Should, Must}, needs: principals,
		run: func(e *env) {
			mine := e.post()
			theirs := e.byOther(mine)
			first := e.first(mine)
			second := e.separate(theirs, first, "the other principal never used this key")
			e.replays(mine, first)
			e.replays(theirs, second)
		},
	},
	{
		ID: "scopes/payload", Sentence: "A principal cannot see that another used a key with another body.",
		Source: "draft 5; R43; ACP 6.1", Levels: Levels{Should, Must, Should, Must}, needs: principals,
		run: func(e *env) {
			mine := e.post()
			first := e.first(mine)
			e.separate(e.byOther(mine).WithBody(e.options.Another), first, "the other principal never used this key")
			e.replays(mine, first)
		},
	},
	{
		ID: "scopes/running", Sentence: "A principal cannot see that another's request with the same key runs.",
		Source: "draft 5; R43", Levels: Levels{Should, Must, Should, Should}, needs: principals | delay,
		run: func(e *env) {
			one, two := e.overlap(func() (wire.Call, wire.Call) {
				c := e.post()
				return c, e.byOther(c)
			})
			switch {
			case !one.OK() || !two.OK():
				e.fail("the one is answered %v and the other %v, want two runs", one, two)
			case !e.ran(one, two):
				e.harm("both got the answer of one run: %v and %v", one, two)
			}
		},
	},
}

// byOther returns the request as the other principal sends it.
func (e *env) byOther(c wire.Call) wire.Call {
	mine, theirs := e.options.Scopes[0], e.options.Scopes[1]
	return c.Without(mine.Name).With(theirs.Name, theirs.Value)
}
