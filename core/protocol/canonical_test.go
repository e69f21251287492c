package protocol

import (
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/protocol/internal/canonical"
)

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
		want := digest(t, CanonicalJSON, jsonRequest("application/json"), "k", same[0])
		for _, body := range same[1:] {
			if got := digest(t, CanonicalJSON, jsonRequest("application/json"), "k", body); got != want {
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
		got := digest(t, CanonicalJSON, jsonRequest("application/json"), "k", body)
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
			asBytes := digest(t, CanonicalJSON, r, "k", c.body) == digest(t, DefaultFingerprint, r, "k", c.body)
			if asBytes != c.bytes {
				t.Errorf("counts as its bytes: %t, want %t", asBytes, c.bytes)
			}
		})
	}
	none, two := jsonRequest(), jsonRequest("application/json", "text/plain")
	for _, r := range []Request{none, two} {
		if digest(t, CanonicalJSON, r, "k", `{}`) != digest(t, DefaultFingerprint, r, "k", `{}`) {
			t.Errorf("Content-Type %q counts as JSON", r.values("Content-Type"))
		}
	}
}
