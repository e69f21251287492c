package adaptertest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// field is the policy whose keys are a member of the body.
func field(cfg protocol.Config) Options {
	cfg.Key = protocol.KeyField("/meta/idempotency_key")
	return Options{Guard: cfg}
}

// keyed returns an unkeyed call in JSON whose body has this text for a key, and an
// amount.
func (e *env) keyed(key string, amount int) call {
	return e.post(echoes).withKeys().with("Content-Type", "application/json").withBody(fmt.Sprintf(`{"amount":%d,"meta":{"idempotency_key":%s}}`, amount, key))
}

// quoted returns text as a string of JSON.
func quoted(text string) string { return `"` + text + `"` }

// formBody is a multipart form, with the boundary b.
const formBody = "--b\r\nContent-Disposition: form-data; name=\"idempotency_key\"\r\n\r\na\r\n--b--\r\n"

var keySourceCases = []testCase{
	{
		conformance.Case{ID: "R48a", Rule: "With KeyField the key is a member of the JSON body: a retry gets the replay, and another request with the key is refused.", Source: "profile"},
		func(e *env) {
			srv := e.serve(field(protocol.Config{Required: true}))
			c := e.keyed(quoted(e.key), 1)
			first := srv.run(c)
			srv.wantBody(first, c.body)
			srv.replays(c, first)
			srv.refuses(e.keyed(quoted(e.key), 2), protocol.CodeKeyReused)
			srv.run(e.keyed(quoted(e.key+"-2"), 2))
			srv.ran(2)
			missing := srv.refuses(c.withBody(`{"amount":1,"meta":{}}`), protocol.CodeKeyMissing)
			if !strings.Contains(missing.body, "field /meta/idempotency_key of the request body") {
				srv.Errorf("the problem does not name the source: %s", missing.body)
			}
		},
	},
	{
		conformance.Case{ID: "R48b", Rule: "A request whose body has no key passes, and its handler reads all of the body.", Source: "profile"},
		func(e *env) {
			srv := e.serve(field(protocol.Config{}))
			c := e.keyed("0", 1).withTenant("").withBody(`{"amount":1,"pad":"` + strings.Repeat("x", 100_000) + `"}`)
			for range 2 {
				srv.wantBody(srv.run(c), c.body)
			}
			w := srv.dial()
			w.write(c.chunked(3000))
			a := w.read()
			srv.wantRun(a)
			srv.wantBody(a, c.body)
			empty := c.withBody("")
			srv.wantBody(srv.run(empty), "")
			srv.run(c.withMethod("PUT").withBody("not JSON"))
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R48c", Rule: "A body in which the key cannot be found for certain is refused, and nothing runs: it is not treated as one without a key.", Source: "profile"},
		func(e *env) {
			srv := e.serve(field(protocol.Config{}))
			c := e.keyed(quoted(e.key), 1)
			for _, key := range []string{`7`, `null`, `["a"]`, `{}`, `""`, `" "`, `"a b"`, `"\u0001"`, `"é"`, `"\ud800"`, quoted(strings.Repeat("a", 256)), quoted(strings.Repeat("a", 1_000_000))} {
				srv.refuses(e.keyed(key, 1), protocol.CodeKeyInvalid)
			}
			for _, body := range []string{
				`{"meta":"a"}`, `{"meta":null}`, `{"meta":[{"idempotency_key":"a"}]}`, `["meta"]`, `"meta"`, `{"meta":{"idempotency_key":"a"}`, `meta`, `{} {}`,
				`{"meta":{"idempotency_key":"a","idempotency_key":"a"}}`, `{"meta":{"idempotency_key":"a"},"m\u0065ta":{}}`,
			} {
				srv.refuses(c.withBody(body), protocol.CodeKeyInvalid)
			}
			for _, media := range []string{"text/plain", "multipart/form-data; boundary=b", "application/x-www-form-urlencoded"} {
				other := e.post(echoes).withKeys().with("Content-Type", media)
				srv.refuses(other.withBody(formBody), protocol.CodeKeyInvalid)
			}
			srv.ran(0)
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R48d", Rule: "A key in the header counts beside the source: both must be the same, and either alone is enough.", Source: "profile"},
		func(e *env) {
			srv := e.serve(field(protocol.Config{Required: true}))
			c := e.keyed(quoted(e.key), 1)
			first := srv.run(c.withKeys(quoted(e.key)))
			srv.replays(c, first)
			srv.refuses(c.withKeys(e.key+"x"), protocol.CodeKeyInvalid)
			srv.refuses(c.withKeys("not a key"), protocol.CodeKeyInvalid)
			srv.refuses(c.withKeys(e.key, e.key), protocol.CodeKeyInvalid)
			plain := c.freshKey().withBody(`{"amount":1}`)
			srv.replays(plain, srv.run(plain))
			form := c.freshKey().with("Content-Type", "text/plain").withBody("not JSON")
			srv.replays(form, srv.run(form))
			srv.ran(3)
			param := e.serve(Options{Guard: protocol.Config{Key: protocol.KeyParam("key")}})
			param.refuses(c.freshKey().withTarget("/t/op?key=other"), protocol.CodeKeyInvalid)
			param.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R48e", Rule: "With KeyParam the key is a query parameter, decoded; two of them, an empty one and a malformed one are refused, and a GET passes.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Key: protocol.KeyParam("request id"), Required: true}})
			target := "/t/op?x=1&request+id=" + e.key
			c := e.post(created).withKeys().withTarget(target)
			first := srv.run(c)
			srv.replays(c, first)
			srv.refuses(c.withBody("another"), protocol.CodeKeyReused)
			srv.refuses(c.withTarget("/t/op?x=1&request%20id="+e.key), protocol.CodeKeyReused) // the query is compared as it is sent
			for _, query := range []string{"request+id=", "request+id", "request+id=a&request%20id=a", "request+id=%zz", "request+id=%00", "request+id=a+b", "request+id=" + strings.Repeat("a", 256)} {
				srv.refuses(c.withTarget("/t/op?"+query), protocol.CodeKeyInvalid)
			}
			missing := srv.refuses(c.withTarget("/t/op?request_id=a"), protocol.CodeKeyMissing)
			if !strings.Contains(missing.body, "query parameter request id") {
				srv.Errorf("the problem does not name the source: %s", missing.body)
			}
			for range 2 {
				srv.run(c.withMethod("GET").withBody(""))
			}
			srv.ran(3)
		},
	},
	{
		conformance.Case{ID: "R48f", Rule: "With KeyFunc a function finds the key, from fields and body; its error refuses the request, its panic is answered 500, and no key passes.", Source: "profile"},
		func(e *env) {
			find := func(r *protocol.Request, body []byte) (string, error) {
				switch id := strings.Join(r.Header.Values("Webhook-Id"), " "); {
				case id == "panic":
					panic("drawn")
				case string(body) == "forged":
					return "", fmt.Errorf("the signature of %q is wrong", id)
				default:
					return id, nil
				}
			}
			srv := e.serve(Options{Guard: protocol.Config{Key: protocol.KeyFunc("event ID", find)}})
			c := e.post(echoes).withKeys()
			first := srv.run(c.with("Webhook-Id", e.key))
			srv.wantBody(first, c.body)
			srv.replays(c.with("Webhook-Id", e.key), first)
			srv.refuses(c.with("Webhook-Id", e.key).withBody("forged"), protocol.CodeKeyInvalid)
			srv.refuses(c.with("Webhook-Id", "not a key"), protocol.CodeKeyInvalid)
			srv.refuses(c.with("Webhook-Id", "panic"), protocol.CodeInternalError)
			srv.wantBody(srv.run(c), c.body)
			srv.ran(2)
		},
	},
	{
		conformance.Case{ID: "R48g", Rule: "With KeyContent equal requests of one scope are one operation until the window ends; another content, another scope and a key in the header are others.", Source: "profile"},
		func(e *env) {
			window := e.fixture.Grain
			srv := e.serve(Options{Guard: protocol.Config{Key: protocol.KeyContent(long), Required: true}})
			c := e.post(created).withKeys().with("Content-Type", "application/json").withBody(`{"a":1,"b":2}`)
			first := srv.run(c)
			srv.replays(c.withBody(`{ "b": 2.0, "a": 1 }`), first)
			srv.run(c.withBody(`{"a":1,"b":3}`))
			srv.run(c.withTarget("/t/op/other"))
			srv.run(c.withTenant(e.tenant + "-2"))
			own := srv.run(c.freshKey())
			if own.exec() != 4 {
				srv.Errorf("a request with a key of its own got the response of run %d", own.exec())
			}
			srv.ran(4) // and one of the other scope
			brief := e.serve(Options{Guard: protocol.Config{Key: protocol.KeyContent(window)}})
			again := c.withTarget("/t/op/again")
			brief.run(again)
			brief.advance(window + window/2)
			if a := brief.run(again); a.exec() != 2 {
				brief.Errorf("after the window: %v", a)
			}
		},
	},
	{
		conformance.Case{ID: "R48h", Rule: "A source in the body is asked after the bounds of the body and before the grammar; the scope is asked for only if there is a key, or must be one.", Source: "profile"},
		func(e *env) {
			srv := e.serve(field(protocol.Config{Limits: protocol.Limits{RequestBody: 200}}))
			bad := e.keyed(quoted("not a key"), 1)
			large := bad.withBody(bad.body + strings.Repeat(" ", 200))
			srv.refuses(large.withTenant("").withKeys("not a key"), protocol.CodeKeyInvalid)
			srv.refuses(large.withTenant("").withKeys(e.key), protocol.CodeScopeMissing)
			srv.refuses(large, protocol.CodeRequestTooLarge)
			srv.refuses(bad.withTenant(""), protocol.CodeKeyInvalid)
			srv.refuses(e.keyed(quoted(e.key), 1).withTenant(""), protocol.CodeScopeMissing)
			srv.wantNoStoreCall()
			demanding := e.serve(field(protocol.Config{Required: true, Limits: protocol.Limits{RequestBody: 200}}))
			demanding.refuses(large.withTenant(""), protocol.CodeScopeMissing)
			demanding.refuses(large, protocol.CodeRequestTooLarge)
			demanding.refuses(bad, protocol.CodeKeyInvalid)
			demanding.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R48i", Rule: "What the header alone rules out is refused before the client is asked to continue, wherever the key is.", Source: "RFC 9110 10.1.1"},
		func(e *env) {
			in := e.serve(field(protocol.Config{Required: true, Limits: protocol.Limits{RequestBody: 1000}}))
			param := e.serve(Options{Guard: protocol.Config{Required: true, Key: protocol.KeyParam("key")}})
			c := e.keyed(quoted(e.key), 1).with("Expect", "100-continue")
			for _, refusal := range []struct {
				srv    *server
				call   call
				length string
				code   protocol.Code
			}{
				{in, c.withKeys("not a key"), "12", protocol.CodeKeyInvalid},
				{in, c.withTenant(""), "12", protocol.CodeScopeMissing},
				{in, c, "1001", protocol.CodeRequestTooLarge},
				{in, c.with("Content-Type", "text/plain"), "12", protocol.CodeKeyInvalid},
				{param, c, "12", protocol.CodeKeyMissing},
				{param, c.withTarget("/t/op?key=not+a+key"), "12", protocol.CodeKeyInvalid},
			} {
				w := refusal.srv.dial()
				w.write(refusal.call.head(line{"Content-Length", refusal.length}))
				a := w.read()
				refusal.srv.wantProblem(a, refusal.call, refusal.code)
				if len(a.early) > 0 {
					e.Errorf("the client is asked to continue before it is told %s", refusal.code)
				}
				refusal.srv.ran(0)
			}
			w := in.dial()
			w.write(c.head(line{"Content-Length", strconv.Itoa(len(c.body))}))
			w.await("HTTP/1.1 100 Continue\r\n\r\n")
			w.write(c.body)
			a := w.read()
			in.wantRun(a)
			in.wantBody(a, c.body)
		},
	},
	{
		conformance.Case{ID: "R48j", Rule: "Guards inside of one another know a request by its key, wherever each of them finds it: the same guard passes with the whole body, and another is refused.", Source: "profile"},
		func(e *env) {
			options := field(protocol.Config{Name: "service"})
			options.Inner = func(outer *protocol.Guard) (*protocol.Guard, error) { return outer, nil }
			srv := e.serve(options)
			c := e.keyed(quoted(e.key), 1)
			first := srv.run(c)
			srv.wantBody(first, c.body)
			srv.replays(c, first)
			srv.wantBody(srv.run(c.withBody(`{"amount":1}`)), `{"amount":1}`)
			for i, inner := range []struct {
				source protocol.KeySource
				call   func(call) call
			}{
				{protocol.KeyHeader("Idempotency-Key"), func(c call) call { return c.withKeys(e.key + "-0") }},
				{protocol.KeyField("/meta/idempotency_key"), func(c call) call { return c }},
				{protocol.KeyContent(long), func(c call) call { return c }},
				{protocol.KeyHeader("X-Inner-Key"), func(c call) call { return c.with("X-Inner-Key", "inner") }},
				{protocol.KeyParam("inner"), func(c call) call { return c.withTarget(c.target + "?inner=inner") }},
			} {
				options.Inner = func(outer *protocol.Guard) (*protocol.Guard, error) {
					return outer.With(func(c *protocol.Config) { c.Name, c.Key, c.Preset = "payments", inner.source, reprise.AtMostOnce })
				}
				e.serve(options).refuses(inner.call(e.keyed(quoted(fmt.Sprintf("%s-%d", e.key, i)), 1)), protocol.CodeInternalError)
			}
		},
	},
	{
		conformance.Case{ID: "R48k", Rule: "A body of which a layer outside consumed a part is refused before a key is looked for in the rest, unless the handler still gets all of it.", Source: "profile"},
		func(e *env) {
			options := field(protocol.Config{})
			options.OuterReads = true
			srv := e.serve(options)
			for _, size := range []int{100, 513, 1537} {
				head := `{"amount":1,"meta":{"idempotency_key":"` + e.key + strconv.Itoa(size) + `"},"pad":"`
				c := e.keyed("0", 1).withBody(head + strings.Repeat("x", size-len(head)-3) + "\"}\n")
				srv.wantWholeOrRefused(c, call.bytes)
			}
		},
	},
	{
		conformance.Case{ID: "R48l", Rule: "With KeyField a response is sealed with the key of the body: it is replayed byte for byte, and the record has nothing of it or of the key.", Source: "profile"},
		func(e *env) {
			seal := e.sealing("2026-11")
			srv := e.serve(field(protocol.Config{Seal: seal}))
			c := e.keyed(quoted(e.key), 1).does(Program{Status: 201, Headers: []Pair{{"X-Private", "a private field"}}, Body: "a private body"})
			srv.replays(c, srv.run(c))
			srv.refuses(e.keyed(quoted(e.key), 2), protocol.CodeKeyReused)
			same := c.withKeys(e.key) // the header of the key is no part of the fingerprint
			payload := srv.recorded(same)
			for _, private := range []string{"private", e.key} {
				if bytes.Contains(payload, []byte(private)) {
					srv.Errorf("the record has %q:\n%s", private, hex.Dump(payload))
				}
			}
			who := e.sealedFor(same)
			if _, err := seal.Open(payload, who.key, who.id, who.fingerprint); err != nil {
				srv.Errorf("with the key of the body the record is not opened: %v", err)
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R48m", Rule: "With KeyField and Offload a response body over the limit is replayed in full, and another request with the key is refused.", Source: "profile"},
		func(e *env) {
			srv, blobs := e.offloading(field(protocol.Config{}).Guard)
			c := e.keyed(quoted(e.key), 1).does(oversized(100_000))
			first := srv.run(c)
			if first.body != string(PatternBody(100_000)) {
				srv.Fatalf("the first answer is %v", first)
			}
			srv.replays(c, first)
			if len(blobs.names()) == 0 {
				srv.Errorf("no blob was written")
			}
			srv.refuses(e.keyed(quoted(e.key), 2), protocol.CodeKeyReused)
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R48n", Rule: "With KeyField and FailOpen a request runs unprotected when the store is unreachable, with all of its body; a malformed key is refused anyway, and no key is not marked.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(e *env) {
			options := field(protocol.Config{FailOpen: true})
			options.Engine = hasty
			srv := e.serve(options)
			srv.faults.Always(faultstore.Claim, faultstore.FailBefore(failure(store.ErrUnavailable)))
			c := e.keyed(quoted(e.key), 1)
			a := srv.send(c)
			srv.wantBody(a, c.body)
			if a.exec() != 1 || a.value(srv.control.Status) != "unprotected" {
				srv.Errorf("answered %v", a)
			}
			srv.refuses(e.keyed(quoted("not a key"), 1), protocol.CodeKeyInvalid)
			srv.refuses(c.withKeys(e.key+"x"), protocol.CodeKeyInvalid)
			plain := srv.run(c.withBody(`{"amount":1}`))
			srv.wantBody(plain, `{"amount":1}`)
			if plain.value(srv.control.Status) != "" {
				srv.Errorf("without a key: %v", plain)
			}
			srv.ran(2)
			srv.faults.Clear()
			srv.replays(c, srv.run(c))
			srv.ran(3)
		},
	},
	{
		conformance.Case{ID: "R48o", Rule: "With KeyField duplicates that wait get the replay, wherever they have the key besides; one that waits for its limit gets 409 in-progress.", Source: "profile"},
		func(e *env) {
			srv := e.serve(field(protocol.Config{Wait: e.fixture.Patience}))
			c := e.keyed(quoted(e.key), 1).does(held)
			first := srv.begin(c)
			srv.waitForHandler()
			others := []*pending{srv.begin(c), srv.begin(c.withKeys(e.key)), srv.begin(c.withKeys(quoted(e.key)))}
			srv.wantWaiting(others)
			srv.refuses(e.keyed(quoted(e.key), 2), protocol.CodeKeyReused)
			srv.releaseHandlers()
			for _, p := range others {
				srv.wantReplay(p.answer(), first.answer())
			}
			srv.ran(1)
			hurried := e.serve(field(protocol.Config{Wait: 50 * time.Millisecond}))
			again := e.keyed(quoted(e.key+"-2"), 1).does(held)
			hurried.begin(again)
			hurried.waitForHandler()
			hurried.refuses(again, protocol.CodeInProgress)
		},
	},
}
