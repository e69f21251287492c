package judge

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

var bindingCases = []Case{
	{
		ID: "binding/refused", Sentence: "A key that comes back with another body is refused: the request does not run, does not get the other's answer, and leaves that answer as it was.",
		Source: "draft 2.2, 2.7; R22; Stripe, Idempotent requests; ACP 6.4", Levels: Levels{Must, Must, Must, Must},
		run: func(e *env) {
			c, first := e.answered()
			e.counts(0, func() { e.unlike(c.WithBody(e.options.Another), first) })
			e.replays(c, first)
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
		ID: "binding/query", Sentence: "A key that comes back with another query is refused.",
		Source: "R24", Levels: Levels{None, Must, Should, None},
		run: func(e *env) {
			c, first := e.answered()
			separator := "?"
			if strings.Contains(c.Target, "?") {
				separator = "&"
			}
			e.unlike(c.WithTarget(c.Target+separator+"judge=1"), first)
		},
	},
	{
		ID: "binding/headers", Sentence: "Fields that say nothing of the operation (User-Agent, Accept, Date, tracing) do not make a retry another request.",
		Source: "draft 2.4; R25; ACP 6.2", Levels: Levels{Must, Must, Should, Must},
		run: func(e *env) {
			c, first := e.answered()
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
			c, first := e.answered()
			e.settled(first, e.chunked(c))
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
			switch {
			case one.OK() && two.OK() && !e.ran(one, two):
				e.harm("both got the answer of one run: %v", one)
			case !one.OK() || two.Status/100 != 4 || two.Status == http.StatusConflict:
				e.fail("of the two one is answered %v and the other %v, want a run and 422", one, two)
			}
		},
	},
	{
		ID: "binding/endpoint", Sentence: "The same key at another endpoint is another key.",
		Source: "ACP 6.1", Levels: Levels{None, None, None, Must}, needs: otherEndpoint,
		run: func(e *env) {
			c, first := e.answered()
			there := e.askAt(e.options.Other, c.At(e.options.Other))
			if !there.OK() || !e.ran(first, there) && there.Body == first.Body {
				e.fail("the other endpoint answers %v, and the first one answered %v", there, first)
			}
			e.replays(c, first)
		},
	},
	{
		ID: "binding/json", Sentence: "The order of a JSON object's members, white space, and 1.0 for 1 do not make a retry another request.",
		Source: "ACP 6.2", Levels: Levels{None, None, None, Must},
		run: func(e *env) {
			same, _ := e.variants()
			c, first := e.answered()
			for _, body := range same {
				e.replays(c.WithBody(body), first)
			}
		},
	},
	{
		ID: "binding/null", Sentence: "A JSON null is not an absent member, and the order of arrays counts: both are refused as another request.",
		Source: "ACP 6.2", Levels: Levels{None, None, None, Must},
		run: func(e *env) {
			_, other := e.variants()
			c := e.post()
			e.first(c)
			for _, body := range other {
				e.refuses(c.WithBody(body), http.StatusUnprocessableEntity)
			}
		},
	},
}

// unlike demands that a request is refused whose key was used by another one before.
func (e *env) unlike(c wire.Call, first *wire.Answer) {
	switch a := e.ask(c); {
	case e.ran(first, a):
		e.fail("it ran: %v", a)
	case a.OK():
		e.harm("it got the answer of the other one: %v", a)
	case a.Status/100 != 4:
		e.fail("it is answered %v, want a 4xx", a)
	}
}

// variants returns forms of the body that are the same JSON object, and some that are
// another one. Which there are depends on the members that the body has.
func (e *env) variants() (same, other []string) {
	members := make(map[string]json.RawMessage)
	if err := json.Unmarshal([]byte(e.options.Body), &members); err != nil {
		e.skip("--body is no JSON object")
	}
	names := slices.Sorted(maps.Keys(members))
	write := func(names []string, space string, changed map[string]string) string {
		parts := make([]string, len(names))
		for i, n := range names {
			name, _ := json.Marshal(n) // of a string
			parts[i] = space + string(name) + space + ":" + space + cmp.Or(changed[n], string(members[n])) + space
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	backwards := slices.Clone(names)
	slices.Reverse(backwards)
	same = append(same, write(names, "", nil), write(backwards, "", nil), write(names, "\n\t ", nil))
	other = append(other, write(append(names, "judge_null"), "", map[string]string{"judge_null": "null"}))
	for n, value := range members {
		var list []json.RawMessage
		if _, err := strconv.Atoi(string(value)); err == nil {
			same = append(same, write(names, "", map[string]string{n: string(value) + ".0"}))
		}
		if json.Unmarshal(value, &list) == nil && len(list) > 1 && string(list[0]) != string(list[len(list)-1]) {
			slices.Reverse(list)
			turned, _ := json.Marshal(list) // of JSON
			other = append(other, write(names, "", map[string]string{n: string(turned)}))
		}
	}
	return same, other
}

// reversed returns the request with its field lines in the opposite order.
func (e *env) reversed(c wire.Call) wire.Call {
	c.Fields = slices.Clone(c.Fields)
	slices.Reverse(c.Fields)
	return c
}
