package judge

import (
	"net/http"
	"strings"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

var keyCases = []Case{
	{
		ID: "key/name", Sentence: "The name of the field is case-insensitive.",
		Source: "RFC 9110 5.1; R1", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			key := e.form(uuid())
			first := e.first(e.keyed(e.unkeyed(), key))
			for _, name := range []string{strings.ToLower(e.options.Header), strings.ToUpper(e.options.Header)} {
				e.replays(e.unkeyed().With(name, key), first)
			}
		},
	},
	{
		ID: "key/quoted", Sentence: "A quoted String is accepted, and a retry with it gets the replay.",
		Source: "draft 2.1; R2", Levels: Levels{Must, Must, Should, Should},
		run: func(e *env) { e.repeatable(`"` + uuid() + `"`) },
	},
	{
		ID: "key/bare", Sentence: "A bare UUID is accepted, and a retry with it gets the replay.",
		Source: "R3; Stripe, Idempotent requests; ACP 6.1", Levels: Levels{None, Should, Must, Must},
		run: func(e *env) { e.repeatable(uuid()) },
	},
	{
		ID: "key/forms", Sentence: "The bare form and the quoted form of a key are the same key.",
		Source: "R3", Levels: Levels{None, Should, None, None}, needs: bare | quoted,
		run: func(e *env) {
			key := uuid()
			e.replays(e.keyed(e.unkeyed(), `"`+key+`"`), e.first(e.keyed(e.unkeyed(), key)))
		},
	},
	{
		ID: "key/escapes", Sentence: "Escapes of a quoted key are decoded: a key with a quote and a backslash is accepted and replayed.",
		Source: "RFC 9651 4.2.5; R2", Levels: Levels{Should, Must, None, None}, needs: quoted,
		run: func(e *env) { e.repeatable(`"` + uuid() + ` \"\\"`) },
	},
	{
		ID: "key/parameters", Sentence: "Parameters of a quoted key do not change it.",
		Source: "RFC 9651 3.1.2; R2", Levels: Levels{Should, Must, None, None}, needs: quoted,
		run: func(e *env) {
			key := `"` + uuid() + `"`
			e.replays(e.keyed(e.unkeyed(), key+`;a=1;b="x"`), e.first(e.keyed(e.unkeyed(), key)))
		},
	},
	{
		ID: "key/case", Sentence: "Keys are case-sensitive.",
		Source: "RFC 9651 3.3.3; R2", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			key := "abcdef" + uuid()[6:] + "-of-the-judge"
			if a := e.ask(e.keyed(e.unkeyed(), e.form(key))); !a.OK() {
				e.skip("keys that are no UUIDs are refused, and UUIDs are not case-sensitive")
			}
			first := e.first(e.keyed(e.unkeyed(), e.form(key)))
			e.separate(e.keyed(e.unkeyed(), e.form(strings.ToUpper(key))), first, "the same letters in upper case are another key")
		},
	},
	{
		ID: "key/distinct", Sentence: "Keys that differ in one place only, or have characters of file names, patterns and separators, are different keys.",
		Source: "draft 5; R2", Levels: Levels{Must, Must, Should, Should},
		run: func(e *env) {
			stem := uuid()[1:35]
			keys := []string{"a" + stem + "0", "a" + stem + "1", "b" + stem + "0"}
			uuids := len(keys)
			suffixes := []string{"a", "b", ":", "/..", "+", ".", "*", "%", "'", "?", "$", ",a"}
			if e.facts.quoted {
				suffixes = append(suffixes, " ")
			}
			for _, suffix := range suffixes {
				keys = append(keys, keys[0]+suffix)
			}
			var seen []*wire.Answer
			for i, key := range keys {
				a := e.ask(e.keyed(e.unkeyed(), e.form(key)))
				if !a.OK() && i >= uuids {
					continue // it takes no such keys
				}
				if !a.OK() {
					e.fail("the new key %s is answered %v", key, a)
				}
				for _, other := range seen {
					if !e.ran(other, a) {
						e.harm("the new key %q gets the answer of another one: %v", key, a)
					}
				}
				seen = append(seen, a)
			}
		},
	},
	{
		ID: "key/spaces", Sentence: "Spaces and tabs around a field value are no part of the key.",
		Source: "RFC 9110 5.5; R4", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			key := e.form(uuid())
			e.replays(e.keyed(e.unkeyed(), " \t "+key+" \t "), e.first(e.keyed(e.unkeyed(), key)))
		},
	},
	{
		ID: "key/255", Sentence: "A key of 255 characters is accepted, and all of them count.",
		Source: "R5; Stripe, Idempotent requests; ACP 6.1", Levels: Levels{May, Must, Must, Must},
		run: func(e *env) {
			stem := strings.Repeat("k", 255-37) + "-" + uuid()
			stem = stem[:254]
			first := e.repeatable(e.form(stem + "a"))
			e.separate(e.keyed(e.unkeyed(), e.form(stem+"b")), first, "a key that differs in the 255th character is another key")
		},
	},
	{
		ID: "key/long", Sentence: "A key of 5,000 characters is refused, and nothing runs.",
		Source: "draft 5; R5; Stripe, Idempotent requests; ACP 6.1", Levels: Levels{Should, Must, Must, Should},
		run: func(e *env) {
			e.rejects(e.keyed(e.unkeyed(), e.form(longKey())))
		},
	},
	{
		ID: "key/malformed", Sentence: "A value that is not a String is refused with 400: open quotes, bytes behind the quotes, wrong escapes, wrong parameters, a list of keys.",
		Source: "draft 2.1, 5; RFC 9651 4.2; R2, R8", Levels: Levels{Should, Must, None, None},
		run: func(e *env) {
			k := uuid()
			for _, value := range []string{`"` + k, `"` + k + `" x`, `"` + k + `"x`, `"` + k + `\n"`, `"` + k + `";`, `"` + k + `";A=1`, `"a" "` + k + `"`, "a " + k, `"` + k + `", "` + k + `b"`} {
				e.refuses(e.keyed(e.unkeyed(), value), http.StatusBadRequest)
			}
		},
	},
	{
		ID: "key/empty", Sentence: "An empty key is refused; it is not taken for an absent one.",
		Source: "draft 5; R5, R8; ACP 6.1", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			e.refuses(e.keyed(e.unkeyed(), ""), http.StatusBadRequest)
			if e.options.Profile.quoted {
				e.refuses(e.keyed(e.unkeyed(), `""`), http.StatusBadRequest)
			}
		},
	},
	{
		ID: "key/lines", Sentence: "Two field lines are refused, even if they are equal.",
		Source: "RFC 9651 4.2; R6", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			key := e.form(uuid())
			e.refuses(e.keyed(e.unkeyed(), key, e.form(uuid())), http.StatusBadRequest)
			e.refuses(e.keyed(e.unkeyed(), key, key), http.StatusBadRequest)
		},
	},
	{
		ID: "key/control", Sentence: "A key with a control byte is refused, and nothing runs.",
		Source: "RFC 9110 5.5; R4", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			for _, b := range []string{"\x00", "\x01", "\t", "\x7f"} {
				e.rejects(e.keyed(e.unkeyed(), e.form(uuid()+b+"x")))
			}
		},
	},
	{
		ID: "key/ascii", Sentence: "A key with a byte beyond ASCII is refused, and nothing runs.",
		Source: "RFC 9651 3.3.3; R4", Levels: Levels{Should, Must, None, None},
		run: func(e *env) {
			for _, b := range []string{"ü", "\xff"} {
				e.rejects(e.keyed(e.unkeyed(), e.form(uuid()+b)))
			}
		},
	},
	{
		ID: "key/trailer", Sentence: "A key in the trailer section is not a key.",
		Source: "RFC 9110 6.5.1; R7", Levels: Levels{Should, Must, Should, Should}, needs: optional,
		run: func(e *env) {
			key := wire.Field{Name: e.options.Header, Value: e.form(uuid())}
			first, again := e.chunked(e.unkeyed(), key), e.chunked(e.unkeyed(), key)
			if !first.OK() || !again.OK() {
				e.fail("a request with a trailer is answered %v, then %v", first, again)
			}
			if !e.ran(first, again) {
				e.fail("the second request was answered by the first run: %v", again)
			}
		},
	},
}

// longKey returns a key of 5,000 characters.
func longKey() string { return uuid() + strings.Repeat("k", 5000-36) }

// repeatable demands that a key is accepted and protects.
func (e *env) repeatable(line string) *wire.Answer {
	c := e.keyed(e.unkeyed(), line)
	first := e.first(c)
	e.replays(c, first)
	return first
}
