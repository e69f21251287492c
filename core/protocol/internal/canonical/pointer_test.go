package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestParsePointer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Pointer{
		"/":                            {""},
		"/id":                          {"id"},
		"/a/0/b c":                     {"a", "0", "b c"},
		"/a~1b/~0/é":                   {"a/b", "~", "é"},
		"/~01":                         {"~1"}, // not a slash: each escape is decoded once (RFC 6901, section 4)
		"//":                           {"", ""},
		strings.Repeat("/a", MaxDepth): slices.Repeat(Pointer{"a"}, MaxDepth),
	} {
		if got, err := ParsePointer(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "id", "#/id", " /id", "/a~", "/a~2", "/~/b", "/~~0", "/\xff", strings.Repeat("/a", MaxDepth+1), "/" + strings.Repeat("a", maxPointer),
	} {
		if got, err := ParsePointer(text); err == nil {
			t.Errorf("%q: %q, want an error", text, got)
		}
	}
}

func pointer(t testing.TB, text string) Pointer {
	t.Helper()
	p := must(ParsePointer(text))
	return p
}

func TestFind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, pointer, want string
		found               bool
		err                 error
	}{
		{`{"key":"a"}`, "/key", "a", true, nil},
		{" {\"b\" : [1, {\"key\":2}], \"\\u006bey\"\t: \"a\\u0062\\\"\"\n}", "/key", `ab"`, true, nil},
		{`{"meta":{"x":"}\\","key":"a"},"key":"b"}`, "/meta/key", "a", true, nil},
		{`{"a/b":{"~":{"":""}}}`, "/a~1b/~0/", "", true, nil},
		{`{}`, "/key", "", false, nil},
		{`{"Key":"a","ke":"y"}`, "/key", "", false, nil},
		{`{"meta":{}}`, "/meta/key", "", false, nil},
		{`{"n":-1.5e+7,"t":true,"z":null,"f":false,"s":"\\","key":"a"}`, "/key", "a", true, nil},

		{``, "/key", "", false, ErrNotJSON},
		{`{"key":"a"`, "/key", "", false, ErrNotJSON},
		{`{"key":"a"} {}`, "/key", "", false, ErrNotJSON},
		{"{\"key\":\"\xff\"}", "/key", "", false, ErrNotJSON},
		{`{"\ud800":1,"key":"a"}`, "/key", "", false, ErrNotJSON},
		{`["key"]`, "/key", "", false, ErrNotObject},
		{`["a"]`, "/0", "", false, ErrNotObject},
		{`"key"`, "/key", "", false, ErrNotObject},
		{`null`, "/key", "", false, ErrNotObject},
		{`{"meta":"key"}`, "/meta/key", "", false, ErrNotObject},
		{`{"meta":null}`, "/meta/key", "", false, ErrNotObject},
		{`{"key":null}`, "/key", "", false, ErrNotString},
		{`{"key":7}`, "/key", "", false, ErrNotString},
		{`{"key":["a"]}`, "/key", "", false, ErrNotString},
		{`{"key":"\ud800"}`, "/key", "", false, ErrNotString},
		{`{"key":"a","key":"a"}`, "/key", "", false, ErrRepeated},
		{`{"key":"a","\u006bey":"b"}`, "/key", "", false, ErrRepeated},
		{`{"meta":{"key":"a"},"meta":{}}`, "/meta/key", "", false, ErrRepeated},
		{`{"x":1,"x":2,"key":"a"}`, "/key", "a", true, nil}, // ambiguous elsewhere
	} {
		got, found, err := Find([]byte(c.text), pointer(t, c.pointer))
		if got != c.want || found != c.found || !errors.Is(err, c.err) {
			t.Errorf("%s in %s: %q, %t, %v; want %q, %t, %v", c.pointer, c.text, got, found, err, c.want, c.found, c.err)
		}
	}
}

// A value of any depth costs neither stack nor memory: only the way to the string counts.
func TestFindSkipsAValueOfAnyDepth(t *testing.T) {
	t.Parallel()
	deep := `{"deep":` + strings.Repeat(`[{"a":`, 2000) + "0" + strings.Repeat(`}]`, 2000) + `,"key":"a"}`
	if got, found, err := Find([]byte(deep), Pointer{"key"}); got != "a" || !found || err != nil {
		t.Errorf("%q, %t, %v", got, found, err)
	}
}

func TestAppendJSONOmits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, omit, want string }{
		{`{"id":7,"a":1}`, "/id", `{"a":1}`},
		{`{"a":1}`, "/id", `{"a":1}`},
		{`{"\u0069d":{"x":[]},"a":1}`, "/id", `{"a":1}`},
		{`{"params":{"sent_at":"now","id":1},"id":2}`, "/params/sent_at /id", `{"params":{"id":1}}`},
		{`{"params":{"sent_at":"now"}}`, "/params/sent_at", `{"params":{}}`},
		{`{"params":["sent_at"],"sent_at":1}`, "/params/sent_at", `{"params":["sent_at"],"sent_at":1}`},
		{`{"params":"sent_at"}`, "/params/sent_at", `{"params":"sent_at"}`},
		{`[{"id":1,"a":1},{"id":2,"a":2}]`, "/0/id /1/id", `[{"a":1},{"a":2}]`},
		{`[{"id":1},{"id":2}]`, "/01/id /-/id", `[{"id":1},{"id":2}]`},
		{`[1,2,3]`, "/1", `[1,3]`},
		{`{"0":{"id":1}}`, "/0/id", `{"0":{}}`},
		{`{"a/b":1,"~":2,"":3,"c":4}`, "/a~1b /~0 /", `{"c":4}`},
		{`7`, "/id", `7`},
	} {
		var omit []Pointer
		for text := range strings.FieldsSeq(c.omit) {
			omit = append(omit, pointer(t, text))
		}
		got, ok := AppendJSON(nil, []byte(c.text), omit...)
		want, _ := AppendJSON(nil, []byte(c.want))
		if !ok || !bytes.Equal(got, want) {
			t.Errorf("%s without %s: %q, %t; want %q", c.text, c.omit, got, ok, want)
		}
	}
	for _, text := range []string{`{"id":1,"id":2}`, `{"id":"\ud800"}`, `{"id":{"a":1,"a":1}}`, `{"id":1e9999999999999999}`} {
		if _, ok := AppendJSON(nil, []byte(text), Pointer{"id"}); ok {
			t.Errorf("%s is ambiguous and has a canonical form without its id", text)
		}
	}
}

// FuzzPointer compares with encoding/json: what a pointer leaves out, and the string that
// it finds.
func FuzzPointer(f *testing.F) {
	f.Add(`{"id":7,"a":1}`, "/id")
	f.Add(`{"params":{"sent_at":"now","a":[1,2]},"id":"x"}`, "/params/sent_at")
	f.Add(`[{"id":"\ud83d\ude00"},[]]`, "/0/id")
	f.Add(`{"a/b":{"~":"\u0022"}}`, "/a~1b/~0")
	f.Add(`{"a":{"a":"}]\\","b":[{}]},"b":null}`, "/a/b/0")
	f.Add(`{"a":1,"\u0061":"x"}`, "/a")
	f.Fuzz(func(t *testing.T, text, at string) {
		p, err := ParsePointer(at)
		if err != nil {
			return
		}
		found, present, err := Find([]byte(text), p)
		whole, ok := AppendJSON(nil, []byte(text))
		without, also := AppendJSON(nil, []byte(text), p)
		if ok != also {
			t.Fatalf("%s: has a form %t, and %t without %s", text, ok, also, at)
		}
		if !ok {
			return
		}
		value := decodeJSON(t, []byte(text))
		wanted, wantErr := lookup(value, p)
		if s, isString := wanted.(string); present != isString || found != s || wantErr != (err != nil) {
			t.Fatalf("%s in %s: found %q, %t, %v; want %v, error %t", at, text, found, present, err, wanted, wantErr)
		}
		rest := must(json.Marshal(remove(value, p)))
		if want, ok := AppendJSON(nil, rest); !ok || !bytes.Equal(without, want) {
			t.Fatalf("%s without %s: %q, want %q", text, at, without, want)
		}
		if again, _ := AppendJSON(nil, rest, p); !bytes.Equal(whole, without) && len(p) == 1 && !isArray(value) && !bytes.Equal(again, without) {
			t.Fatalf("%s without %s twice: %q, want %q", text, at, again, without)
		}
	})
}

func isArray(value any) bool {
	_, ok := value.([]any)
	return ok
}

// lookup returns the string at p, nil if a member is missing, and whether that is wrong.
func lookup(value any, p Pointer) (found any, wrong bool) {
	for _, token := range p {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, true
		}
		if value, ok = object[token]; !ok {
			return nil, false
		}
	}
	_, isString := value.(string)
	if !isString {
		return nil, true
	}
	return value, false
}

// remove returns value without the part at p.
func remove(value any, p Pointer) any {
	switch value := value.(type) {
	case map[string]any:
		switch inner, ok := value[p[0]]; {
		case ok && len(p) == 1:
			delete(value, p[0])
		case ok:
			value[p[0]] = remove(inner, p[1:])
		}
	case []any:
		i, err := strconv.Atoi(p[0])
		switch {
		case err != nil || strconv.Itoa(i) != p[0] || i < 0 || i >= len(value):
		case len(p) == 1:
			return slices.Delete(value, i, i+1)
		default:
			value[i] = remove(value[i], p[1:])
		}
	}
	return value
}

// must returns v where err is nil, and panics otherwise: for what a test needs before it
// tests.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
