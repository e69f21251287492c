package protocol

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/protocol/internal/canonical"
	"github.com/reprise-go/reprise/core/store"
)

// lines is a request header with canonical names.
type lines map[string][]string

func (l lines) Values(name string) []string { return l[name] }

func digestOf(t *testing.T, f Fingerprinter, r Request, key, body string) store.Fingerprint {
	t.Helper()
	return must(f(&r, key, []byte(body)))
}

// omitting returns CanonicalJSON without the parts of the body that pointers name.
func omitting(pointers ...string) Fingerprinter {
	omit, err := (&Fingerprinting{Func: CanonicalJSON, Omit: pointers}).omitted()
	return func(r *Request, key string, body []byte) (store.Fingerprint, error) {
		return canonicalJSON(r, key, body, omit), err
	}
}

// An independent program computed the vectors, from the layouts in the comments. After a
// change of one of them, all retries of requests in flight get 422.
func TestFingerprintGoldenVectors(t *testing.T) {
	t.Parallel()
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	long := make([]byte, 70_000)
	for i := range long {
		long[i] = byte(i % 251)
	}
	for _, c := range []struct {
		name    string
		f       Fingerprinter
		request Request
		key     string
		body    string
		want    string
	}{
		{
			"a usual request", DefaultFingerprint, jsonRequest("application/json"), uuid, `{"sku":"tea","quantity":2}`,
			"89ef26ec2d903b25ecdd3f8eacb4a800061dc6e7e001c757168330a1a0c1a36c",
		},
		{
			"every part", DefaultFingerprint,
			Request{Method: "PATCH", Path: "/v1/orders%2F7", RawQuery: "dry=1&x=%20", Header: lines{
				"Content-Type": {"Application/JSON ; v=1; Charset=\"UTF-8\""}, "Content-Encoding": {"GZip", " br"},
			}},
			"k", string(everyByte),
			"4b34bcd9e2f4ff0cdc2a87ebb0df143c4690aefc2a468e8b2d342f742192804d",
		},
		{
			"nothing but a path", DefaultFingerprint,
			Request{Method: "POST", Path: "/"},
			"k", "",
			"83317c0faf873d6a8011302dd6585a42c24dc16699735b88c49e819535abefe3",
		},
		{
			"canonical JSON", CanonicalJSON, jsonRequest("application/json"), "k", `{"quantity": [-2.50, 0e7, null, true, false], "sku": "t\u00e9\n"}`,
			"c53b3884674863b67d44e3e7c117ada27769d83bf8b440024525a05f2de5a4dc",
		},
		{
			"canonical JSON without two parts of it, the vector of the rest", omitting("/sent_at", "/quantity/5/id"),
			jsonRequest("application/json"), "k", `{"sent_at": {"s": 1}, "sku": "t\u00e9\n", "quantity": [-2.50, 0e7, null, true, false]}`,
			"c53b3884674863b67d44e3e7c117ada27769d83bf8b440024525a05f2de5a4dc",
		},
		{
			"canonical JSON without an inner part", omitting("/meta/id"), jsonRequest("application/json"), "k", `{"meta": {"id": 7, "v": 1}, "a": "b"}`,
			"bb60d8517e049dfee44cd6e587be03f3be9e00cefd38e6755f7842ae7e3f91dd",
		},
		{
			"a long body", DefaultFingerprint,
			Request{Method: "PUT", Path: "/blobs/1", Header: lines{"Content-Type": {"application/octet-stream"}}},
			"k", string(long),
			"08c2fe03fa312c4cff0881f9de93103dfdfcefc5e234a0f9afbf938c824109ed",
		},
		{
			"a form", DefaultFingerprint,
			Request{Method: "POST", Path: "/upload", Header: lines{"Content-Type": {"Multipart/Form-Data; charset=utf-8; Boundary=\"b b\""}}},
			"k", "--b b\r\nContent-Disposition: form-data; name=title\r\n\r\ntea\r\n--b b\r\nCONTENT-TYPE:Text/Plain; charset=utf-8\r\n" +
				"content-disposition: Form-Data; Name=\"file\"; filename=\"a\\\"b.txt\"\r\n\r\n" + string(everyByte) + "\r\n--b b--\r\n",
			"6e13cb27c9a39e5fdb892dc2bdc8a1c4b5dafa2b770a719c30f081b94045b813",
		},
		{
			"an odd form", CanonicalJSON,
			Request{Method: "POST", Path: "/upload", Header: lines{"Content-Type": {"multipart/form-data; boundary=b"}, "Content-Encoding": {"identity"}}},
			"k", "pre\r\n--b\r\nX-A: 1\r\n\r\n--b \t\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: Binary\r\nContent-Type: text/html; a\r\n" +
				"Content-Disposition: Form-Data; name\r\n\r\nx\r\ny\r\n--b-- \r\npost",
			"e79aaa907c22df478357e7babd0c9073d476a06935e36b9c6ff9e9838b79b356",
		},
		{
			"none", NoFingerprint,
			Request{Method: "POST", Path: "/orders"},
			"k", "anything",
			"7ad776e4d804cc61e90d8ea49bddf5f608704ec7c06f4054fe494b67683074fb",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := digestOf(t, c.f, c.request, c.key, c.body)
			if hex.EncodeToString(got[:]) != c.want {
				t.Errorf("got %x, want %s", got, c.want)
			}
		})
	}
}

func TestR24EveryPartCounts(t *testing.T) {
	t.Parallel()
	type parts struct{ method, path, query, contentType, coding, key, body string }
	base := parts{"POST", "/a", "q=1", "text/plain; charset=utf-8", "gzip", "k", "body"}
	variants := map[string]parts{"base": base}
	vary := func(name string, change func(*parts)) {
		p := base
		change(&p)
		variants[name] = p
	}
	vary("method", func(p *parts) { p.method = "PATCH" })
	vary("method case", func(p *parts) { p.method = "post" })
	vary("path", func(p *parts) { p.path = "/b" })
	vary("path case", func(p *parts) { p.path = "/A" })
	vary("escaped path", func(p *parts) { p.path = "/%61" })
	vary("query", func(p *parts) { p.query = "q=2" })
	vary("no query", func(p *parts) { p.query = "" })
	vary("path takes the query", func(p *parts) { p.path, p.query = "/aq=1", "" })
	vary("media type", func(p *parts) { p.contentType = "text/html; charset=utf-8" })
	vary("longer media type", func(p *parts) { p.contentType = "text/plainer" })
	vary("no type", func(p *parts) { p.contentType = "" })
	vary("coding", func(p *parts) { p.coding = "br" })
	vary("two codings", func(p *parts) { p.coding = "gzip, gzip" })
	vary("no coding", func(p *parts) { p.coding = "" })
	vary("key", func(p *parts) { p.key = "K" })
	vary("body", func(p *parts) { p.body = "bodY" })
	vary("body with a NUL", func(p *parts) { p.body = "body\x00" })
	vary("no body", func(p *parts) { p.body = "" })

	seen := map[store.Fingerprint]string{}
	for name, p := range variants {
		h := lines{}
		if p.contentType != "" {
			h["Content-Type"] = []string{p.contentType}
		}
		if p.coding != "" {
			h["Content-Encoding"] = []string{p.coding}
		}
		got := digestOf(t, DefaultFingerprint, Request{Method: p.method, Path: p.path, RawQuery: p.query, Header: h}, p.key, p.body)
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q have one fingerprint", name, other)
		}
		seen[got] = name
	}
}

func TestR25SpellingDoesNotMatter(t *testing.T) {
	t.Parallel()
	request := func(h lines) Request { return Request{Method: "POST", Path: "/a", Header: h} }
	for _, group := range [][]lines{
		{
			{},
			{"Date": {"x"}, "User-Agent": {"x"}, "Traceparent": {"x"}, "Accept": {"x"}, "Accept-Language": {"x"}, "Authorization": {"x"}, "Cookie": {"x"}},
		},
		{
			{"Content-Type": {"text/plain"}},
			{"Content-Type": {"Text/Plain; Charset=UTF-16"}},
			{"Content-Type": {"text/plain ; charset=\"utf-8\""}},
			{"Content-Type": {"text/plain; q=\"a;charset=x\\\";\"; charset = utf-8; charset=other"}},
			{"Content-Type": {" text/plain;;charset=utf-8; boundary=abc "}},
		},
		{
			{"Content-Type": {"multipart/form-data; boundary=1"}},
			{"Content-Type": {"multipart/form-data; boundary=\"2"}},
			{"Content-Type": {"multipart/form-data"}},
		},
		{
			{"Content-Encoding": {"gzip, br"}},
			{"Content-Encoding": {"GZIP", "Br"}},
			{"Content-Encoding": {" gzip,, br\t,"}},
		},
	} {
		want := digestOf(t, DefaultFingerprint, request(group[0]), "k", "body")
		for _, h := range group[1:] {
			if got := digestOf(t, DefaultFingerprint, request(h), "k", "body"); got != want {
				t.Errorf("%v and %v have two fingerprints", group[0], h)
			}
		}
	}
}

// FuzzFingerprintInjective cuts one text into key, method, path, query and body in two
// ways: two ways to cut are two requests, and two requests have two fingerprints.
func FuzzFingerprintInjective(f *testing.F) {
	f.Add("kPOST/aq=1body", uint(1), uint(5), uint(7), uint(10), uint(1), uint(5), uint(7), uint(11))
	f.Add("", uint(0), uint(0), uint(0), uint(0), uint(0), uint(0), uint(0), uint(0))
	f.Add("\x00\x00\x00\x00\x00\x00\x00\x01a", uint(0), uint(1), uint(8), uint(9), uint(0), uint(0), uint(8), uint(9))
	f.Add(strings.Repeat("long", 600), uint(1), uint(5), uint(700), uint(2000), uint(1), uint(5), uint(2000), uint(2400))
	f.Add("\x00\x00\x00\x00\x00\x00\x00\x04POST\x00\x00\x00\x00\x00\x00\x00\x01/", uint(0), uint(12), uint(8), uint(1), uint(0), uint(0), uint(20), uint(1))
	f.Add("aaaaaaaa", uint(1), uint(1), uint(1), uint(1), uint(1), uint(1), uint(1), uint(2))
	f.Fuzz(func(t *testing.T, text string, a1, b1, c1, d1, a2, b2, c2, d2 uint) {
		first, second := cutText(text, a1, b1, c1, d1), cutText(text, a2, b2, c2, d2)
		same := digestParts(t, first) == digestParts(t, second)
		if same != (first == second) {
			t.Fatalf("%q and %q: one fingerprint is %t", first, second, same)
		}
	})
}

// cutText cuts text at four places, in order of their appearance, each taken modulo the
// rest.
func cutText(text string, places ...uint) (parts [5]string) {
	for i, place := range places {
		at := int(place % uint(len(text)+1))
		parts[i], text = text[:at], text[at:]
	}
	parts[4] = text
	return parts
}

func digestParts(t *testing.T, p [5]string) store.Fingerprint {
	t.Helper()
	return digestOf(t, DefaultFingerprint, Request{Method: p[1], Path: p[2], RawQuery: p[3]}, p[0], p[4])
}

func jsonRequest(contentType ...string) Request {
	return Request{Method: "POST", Path: "/orders", Header: lines{"Content-Type": contentType}}
}

func TestCanonicalJSONComparesValues(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{`{"a":1,"b":[true,null]}`, " {\"b\" : [ true , null ] ,\r\n\t\"a\": 1 } "},
		{`{"a":{"x":1,"y":2},"b":{}}`, `{"b":{},"a":{"y":2,"x":1}}`},
		{`{"":1,"a":2,"aa":3,"b":4}`, `{"b":4,"aa":3,"a":2,"":1}`},
		{`"aé\"\\/\b\f\n\r\t"`, `"\u0061\u00e9\u0022\u005c\/\u0008\u000C\u000a\u000d\u0009"`},
		{`"😀"`, `"\ud83d\ude00"`, `"\uD83D\uDE00"`},
		{`1`, `1.0`, `1.000`, `1e0`, `1E+0`, `10e-1`, `0.1e1`, `100e-00002`},
		{`0`, `-0`, `0.0`, `0e5`, `-0.000e-7`},
		{`-12.5`, `-1.25e1`, `-125E-1`, `-12.500`},
		{`9007199254740993`, `9007199254740993.0`, `9.007199254740993e15`},
		{`1e999999999999999`, `10e999999999999998`},
		{`[]`, `[ ]`},
	} {
		want := digestOf(t, CanonicalJSON, jsonRequest("application/json"), "k", same[0])
		for _, body := range same[1:] {
			if got := digestOf(t, CanonicalJSON, jsonRequest("application/json"), "k", body); got != want {
				t.Errorf("%s and %s have two fingerprints", same[0], body)
			}
		}
	}
}

func TestCanonicalJSONDistinguishesValues(t *testing.T) {
	t.Parallel()
	bodies := []string{
		`null`, `true`, `false`, `0`, `1`, `-1`, `10`, `1e1000`, `0.1`, `11`, `"1"`, `""`, `"z"`, `[]`, `{}`, `[[]]`, `[{}]`, `[null]`, `["a"]`,
		`["a","b"]`, `["b","a"]`, `["ab"]`, `[1,2]`, `[12]`, `[[1],2]`, `[[1,2]]`, `[1,[2]]`, `{"a":1}`, `{"a":"1"}`, `{"A":1}`, `{"a":{"b":1}}`,
		`{"a":{},"b":1}`, `{"a":null}`, `{"a":[],"b":[]}`, `{"a":["b"]}`, `["a",{"b":1}]`,
		`9007199254740992`, `9007199254740993`, // one floating-point number, two amounts
		`"\ufffd"`, `"\ud800"`, `"\udc00"`, `"\ud800\ud800"`, `"\ud800x"`, "\"\xff\"", // strings that a lenient decoder takes for one
		`{"a":1,"a":1}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":1}`, // and for one object
		`1e1000000000000000`, `1e1000000000000001`, `{"a":1`, `{"a":1} x`, ``,
	}
	seen := map[string]string{}
	for _, body := range bodies {
		got := digestOf(t, CanonicalJSON, jsonRequest("application/json"), "k", body)
		if other, ok := seen[string(got[:])]; ok {
			t.Errorf("%s and %s have one fingerprint", other, body)
		}
		seen[string(got[:])] = body
	}
}

func TestCanonicalJSONFallsBackToBytes(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", canonical.MaxDepth+1) + strings.Repeat("]", canonical.MaxDepth+1)
	objects := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "0" + strings.Repeat("}", depth) }
	mixed := func(depth int) string {
		return strings.Repeat(`[{"a":`, depth/2) + "0" + strings.Repeat("}]", depth/2)
	}
	for _, c := range []struct {
		name, contentType, body string
		bytes                   bool
	}{
		{"JSON", "application/json", `{}`, false},
		{"JSON in any case, with parameters", "Application/JSON; charset=utf-8", `{}`, false},
		{"text/json", "text/json", `{}`, false},
		{"a +json type", "application/vnd.shop.order+JSON", `{}`, false},
		{"as deep as it may be", "application/json", deep[1 : len(deep)-1], false},
		{"too deep", "application/json", deep, true},
		{"objects as deep as they may be", "application/json", objects(canonical.MaxDepth), false},
		{"objects that are too deep", "application/json", objects(canonical.MaxDepth + 1), true},
		{"objects in arrays, as deep as they may be", "application/json", mixed(canonical.MaxDepth), false},
		{"objects in arrays, too deep", "application/json", mixed(canonical.MaxDepth + 2), true},
		{"another type", "text/plain", `{}`, true},
		{"json in the name only", "application/json-patch", `{}`, true},
		{"not JSON", "application/json", `{`, true},
		{"two values", "application/json", `{} {}`, true},
		{"a byte order mark", "application/json", "\ufeff{}", true},
		{"not UTF-8", "application/json", "\"\xe9\"", true},
		{"a name twice", "application/json", `{"a":1,"a":1}`, true},
		{"a name twice, spelled differently", "application/json", `[{"b":{"a":1,"c":2,"\u0061":3}}]`, true},
		{"half of a surrogate pair", "application/json", `["\ud83d"]`, true},
		{"the wrong half in a name", "application/json", `{"\ude00\ud83d":1}`, true},
		{"an exponent of 16 digits", "application/json", `1e1000000000000000`, true},
		{"no body", "application/json", ``, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := jsonRequest(c.contentType)
			asBytes := digestOf(t, CanonicalJSON, r, "k", c.body) == digestOf(t, DefaultFingerprint, r, "k", c.body)
			if asBytes != c.bytes {
				t.Errorf("counts as its bytes: %t, want %t", asBytes, c.bytes)
			}
		})
	}
	none, two := jsonRequest(), jsonRequest("application/json", "text/plain")
	for _, r := range []Request{none, two} {
		if digestOf(t, CanonicalJSON, r, "k", `{}`) != digestOf(t, DefaultFingerprint, r, "k", `{}`) {
			t.Errorf("Content-Type %q counts as JSON", r.values("Content-Type"))
		}
	}
}
