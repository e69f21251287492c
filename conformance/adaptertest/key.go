package adaptertest

import (
	"fmt"
	"strings"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

// created is a program with a response that is kept.
var created = Program{Status: 201, Headers: []Pair{{"Location", "/orders/1"}, {"Content-Type", "application/json"}}, Body: `{"id":1}`}

var keyCases = []testCase{
	{
		conformance.Case{ID: "R1a", Rule: "The name of the key's field is case-insensitive.", Source: "RFC 9110 5.1"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created)
			first := srv.run(c)
			for _, name := range []string{"idempotency-key", "IDEMPOTENCY-KEY", "iDeMpOtEnCy-KeY"} {
				srv.wantReplay(srv.dial().ask(c.withKeys().with(name, e.key)), first)
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R1b", Rule: "The field's name can be configured; the default name is then ignored, and problems mention the configured one.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Key: protocol.KeyHeader("X-Order-Token"), Required: true}})
			c := e.post(created).withKeys()
			first := srv.run(c.with("X-Order-Token", e.key))
			srv.replays(c.with("x-order-token", e.key), first)
			missing := srv.refuses(c.withKeys(e.key), protocol.CodeKeyMissing)
			if !strings.Contains(missing.body, "X-Order-Token") || strings.Contains(missing.body, keyField) {
				srv.Errorf("the problem does not name the field: %s", missing.body)
			}
		},
	},
	{
		conformance.Case{ID: "R1c", Rule: "An alias of the field is equivalent to it; two of the names in one request are refused.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Key: protocol.KeyHeader("Idempotency-Key", "X-Idempotency-Key")}})
			c := e.post(created)
			first := srv.run(c)
			srv.replays(c.withKeys().with("X-Idempotency-Key", e.key), first)
			srv.refuses(c.with("X-Idempotency-Key", e.key), protocol.CodeKeyInvalid)
			srv.refuses(c.freshKey().with("x-idempotency-key", e.key), protocol.CodeKeyInvalid)
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R1d", Rule: "Checks are made in the order method, key lines, grammar, scope, body; the first that fails is the response.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Required: true, Limits: protocol.Limits{RequestBody: 8}}})
			large := e.post(created).withBody("more than eight bytes")
			srv.run(large.withMethod("GET").withBody("").withKeys("not a key"))
			srv.refuses(large.withTenant("").withKeys(), protocol.CodeKeyMissing)
			srv.refuses(large.withTenant("").withKeys("not a key"), protocol.CodeKeyInvalid)
			srv.refuses(large.withTenant("").withKeys("a", "a"), protocol.CodeKeyInvalid)
			srv.refuses(large.withTenant(""), protocol.CodeScopeMissing)
			srv.refuses(large, protocol.CodeRequestTooLarge)
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R1e", Rule: "A request without a key is passed on before its body arrives: only the handler reads it.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			held := created
			held.Effect = true
			for _, c := range []call{e.post(held).withKeys(), e.post(held).withMethod("PUT")} {
				w := srv.dial()
				w.write(c.head(line{"Content-Length", "10"}))
				srv.waitForHandler()
				w.write("0123456789")
				srv.releaseHandlers()
				srv.wantRun(w.read())
			}
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R1f", Rule: "A request without a key is not asked for its scope, and never reaches the store.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created).withTenant("")
			srv.run(c.withKeys())
			srv.run(c.withKeys().withMethod("PATCH"))
			srv.run(c.withMethod("GET").withBody(""))
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R2a", Rule: "A quoted key is a String of RFC 9651: escapes are decoded, and two spellings of one string are one key.", Source: "draft 2.1, RFC 9651 4.2.5"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created)
			first := srv.run(c.withKeys(`"` + e.key + `"`))
			srv.replays(c, first)
			escaped := srv.run(c.withKeys(`"` + e.key + ` \"\\ {}@,;"`))
			srv.replays(c.withKeys(`"`+e.key+` \"\\ {}@,;";again`), escaped)
			srv.ran(2)
		},
	},
	{
		conformance.Case{ID: "R2b", Rule: "Keys are case-sensitive, and no character of them is folded or trimmed.", Source: "draft 2.1"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created)
			keys := []string{"abc", "ABC", "aBc", `"abc "`, `" abc"`, `"a b c"`, "abc.", "abc~", "%61bc"}
			for i, key := range keys[:len(keys)-1] {
				if a := srv.run(c.withKeys(key)); a.exec() != i+1 {
					srv.Errorf("%s is taken for an earlier key: %v", key, a)
				}
			}
			srv.refuses(c.withKeys(keys[len(keys)-1]), protocol.CodeKeyInvalid)
		},
	},
	{
		conformance.Case{ID: "R2c", Rule: "Parameters of a key are checked for syntax and then ignored.", Source: "RFC 9651 3.1.2"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created)
			first := srv.run(c)
			for _, parameters := range []string{`;a`, `;v=1`, `;v=1.5;w=?0`, `; x="a;b\""`, `;a=tok/en:x`, `;b=:AAA=:;c`, `;*x=-1`} {
				srv.replays(c.withKeys(`"`+e.key+`"`+parameters), first)
			}
			for _, parameters := range []string{`;`, `;A`, `;=1`, `;a=`, `;a="`, `;a=?2`, `;a b`, `;a=1..2`, ` ;a`, `,`, `;a;`} {
				srv.refuses(c.withKeys(`"`+e.key+`"`+parameters), protocol.CodeKeyInvalid)
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R2d", Rule: "Bad escapes, unbalanced quotes and trailing bytes are refused.", Source: "RFC 9651 4.2.5"},
		func(e *env) {
			srv := e.serve(Options{})
			for _, key := range []string{`"`, `"abc`, `"abc\"`, `"a\bc"`, `"abc"d`, `"abc" d`, `"abc""def"`, `"abc"=`, `"a\`, `"abc"(1)`} {
				srv.refuses(e.post(created).withKeys(key), protocol.CodeKeyInvalid)
			}
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R3a", Rule: "A bare key of letters, digits and . _ ~ : + / = - is the same key as its quoted form.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created)
			for i, key := range []string{
				"8e03978e-40d5-43dd-bc93-6894a57f9324", "ae03978e-40d5-43dd-bc93-6894a57f9324", "0", "-", "A._~:+/=-z", "YWJjZA==", "urn:x:1", "1.5", "=",
			} {
				first := srv.run(c.withKeys(key))
				if first.exec() != i+1 {
					srv.Fatalf("%s is taken for an earlier key: %v", key, first)
				}
				srv.replays(c.withKeys(`"`+key+`"`), first)
			}
		},
	},
	{
		conformance.Case{ID: "R3b", Rule: "A bare key with any other character is refused.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			for _, char := range "!#$%&'()*,;<>?@[\\]^`{|}\" " {
				srv.refuses(e.post(created).withKeys("abc"+string(char)+"def"), protocol.CodeKeyInvalid)
			}
			for _, key := range []string{`?1`, `(a)`, `'abc'`, `abc"def"`, `abc;v=1`, `%22abc%22`, `{abc}`, `<abc>`} {
				srv.refuses(e.post(created).withKeys(key), protocol.CodeKeyInvalid)
			}
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R3c", Rule: "In strict mode a bare key is refused, and a quoted one is not.", Source: "draft 2.1"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{KeyMode: protocol.Strict}})
			c := e.post(created)
			for _, key := range []string{e.key, "8e03978e-40d5-43dd-bc93-6894a57f9324", "1", "?1"} {
				srv.refuses(c.withKeys(key), protocol.CodeKeyInvalid)
			}
			first := srv.run(c.withKeys(`"` + e.key + `"`))
			srv.replays(c.withKeys(`"`+e.key+`";v=1`), first)
		},
	},
	{
		conformance.Case{ID: "R4a", Rule: "A key with a control byte, a TAB inside, or a byte of 0x80 or above is refused, and nothing runs.", Source: "RFC 9651 4.2.5, profile"},
		func(e *env) {
			srv := e.serve(Options{})
			for b := range 256 {
				if b >= ' ' && b <= '~' || b == '\n' {
					continue
				}
				for _, form := range []string{"abc%sdef", `"abc%sdef"`, `"abc";p="%s"`} {
					key := fmt.Sprintf(form, string([]byte{byte(b)}))
					if a := srv.dial().ask(e.post(created).withKeys(key)); a.status != 400 {
						srv.Errorf("a key with the byte %#02x is answered %v, want 400", b, a)
					}
				}
			}
			srv.ran(0)
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R4b", Rule: "Spaces and TABs around a key are not part of it.", Source: "RFC 9110 5.5"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created)
			first := srv.run(c)
			for _, form := range []string{" %s", "%s ", "\t%s", "%s\t", " \t %s \t ", ` "%s" `, "\t\"%s\"\t"} {
				srv.wantReplay(srv.dial().ask(c.withKeys(fmt.Sprintf(form, e.key))), first)
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R5a", Rule: "A field that is present but empty is refused; it is not treated as absent.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			for _, key := range []string{"", " ", "\t", `""`, `"";a=1`, ` "" `} {
				c := e.post(created).withKeys(key)
				srv.wantProblem(srv.dial().ask(c), c, protocol.CodeKeyInvalid)
			}
			srv.ran(0)
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R5b", Rule: "A key has at most 255 bytes, counted after decoding.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created)
			srv.run(c.withKeys(strings.Repeat("a", 255)))
			srv.run(c.withKeys(`"` + strings.Repeat(`\"`, 255) + `"`))
			srv.refuses(c.withKeys(strings.Repeat("a", 256)), protocol.CodeKeyInvalid)
			srv.refuses(c.withKeys(`"`+strings.Repeat("a", 256)+`"`), protocol.CodeKeyInvalid)
			srv.refuses(c.withKeys(strings.Repeat("a", 3000)), protocol.CodeKeyInvalid)
			srv.refuses(c.withKeys(`"a";p="`+strings.Repeat("a", 3000)+`"`), protocol.CodeKeyInvalid)
		},
	},
	{
		conformance.Case{ID: "R5c", Rule: "The maximum length of keys can be configured.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Limits: protocol.Limits{Key: 36}}})
			c := e.post(created)
			srv.run(c.withKeys("8e03978e-40d5-43dd-bc93-6894a57f9324"))
			srv.refuses(c.withKeys("8e03978e-40d5-43dd-bc93-6894a57f93240"), protocol.CodeKeyInvalid)
		},
	},
	{
		conformance.Case{ID: "R6a", Rule: "More than one field line with a key is refused, even if the lines are equal.", Source: "RFC 9651 3"},
		func(e *env) {
			srv := e.serve(Options{})
			for _, keys := range [][]string{{e.key, e.key}, {e.key, "other"}, {e.key, ""}, {"", e.key}, {`"a"`, `"b"`}, {e.key, e.key, e.key}} {
				c := e.post(created).withKeys(keys...)
				srv.wantProblem(srv.dial().ask(c), c, protocol.CodeKeyInvalid)
			}
			apart := e.post(created).with("X-Between", "1").with("idempotency-key", "other")
			srv.wantProblem(srv.dial().ask(apart), apart, protocol.CodeKeyInvalid)
			srv.ran(0)
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R6b", Rule: "A list of keys in one field line is refused.", Source: "RFC 9651 3"},
		func(e *env) {
			srv := e.serve(Options{})
			for _, list := range []string{"abc, def", "abc,abc", `"abc", "def"`, `"abc","abc"`, `"abc",`, ",abc", "abc,"} {
				srv.refuses(e.post(created).withKeys(list), protocol.CodeKeyInvalid)
			}
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R7a", Rule: "A key in a trailer is ignored: the request has none.", Source: "RFC 9110 6.5.1"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created).withKeys()
			for range 2 {
				w := srv.dial()
				w.write(c.chunked(4, line{keyField, e.key}))
				srv.wantRun(w.read())
			}
			srv.ran(2)
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R7b", Rule: "A key in a trailer neither satisfies Required nor conflicts with the key in the header.", Source: "RFC 9110 6.5.1"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Required: true}})
			c := e.post(created)
			w := srv.dial()
			w.write(c.withKeys().chunked(4, line{keyField, e.key}))
			srv.wantProblem(w.read(), c.withKeys(), protocol.CodeKeyMissing)
			w = srv.dial()
			w.write(c.chunked(4, line{keyField, "another"}))
			first := w.read()
			srv.wantRun(first)
			srv.replays(c, first)
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R8", Rule: "A malformed key is never treated as absent, even where keys are optional.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			for _, method := range []string{"POST", "PATCH"} {
				for _, key := range []string{`"`, `"abc`, "a b", "(abc)", `""`, strings.Repeat("k", 256), "undefined null"} {
					srv.refuses(e.post(created).withMethod(method).withKeys(key), protocol.CodeKeyInvalid)
				}
			}
			srv.ran(0)
			srv.wantNoStoreCall()
		},
	},
}
