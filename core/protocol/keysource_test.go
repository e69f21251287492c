package protocol_test

import (
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

func found(*protocol.Request, []byte) (string, error) { return "k", nil }

func TestNewRefusesAKeySource(t *testing.T) {
	t.Parallel()
	content := protocol.KeyContent(time.Minute)
	for want, cfg := range map[string]protocol.Config{
		`Key: KeyField: "" is not`:                    {Key: protocol.KeyField("")},
		`Key: KeyField: "key" is not`:                 {Key: protocol.KeyField("key")},
		`Key: KeyField: "/a~2" is not`:                {Key: protocol.KeyField("/a~2")},
		"Key: KeyField: a JSON pointer of 1026 bytes": {Key: protocol.KeyField("/" + strings.Repeat("a", 1025))},
		`Key: KeyParam: the name ""`:                  {Key: protocol.KeyParam("")},
		`Key: KeyParam: the name "a\n"`:               {Key: protocol.KeyParam("a\n")},
		"Key: KeyParam: the name \"aaa":               {Key: protocol.KeyParam(strings.Repeat("a", 65))},
		`Key: KeyFunc: the name ""`:                   {Key: protocol.KeyFunc("", found)},
		"Key: KeyFunc: the function is nil":           {Key: protocol.KeyFunc("event ID", nil)},
		"Key: KeyContent: the window is 0s":           {Key: protocol.KeyContent(0)},
		"Key: KeyContent: the window is -1s":          {Key: protocol.KeyContent(-time.Second)},
		"Key: KeyContent: the window is 87601h0m0s":   {Key: protocol.KeyContent(store.MaxDuration + time.Hour)},
		"Retention: 1h0m0s, and the window":           {Key: content, Retention: time.Hour},
		"Horizon: cannot be combined with KeyContent": {Key: content, Horizon: time.Hour},
		"Fingerprint.Func: NoFingerprint":             {Key: content, Fingerprint: protocol.Fingerprinting{Func: protocol.NoFingerprint}},
		"idempotency-key is a header of the key":      {Key: content, Fingerprint: protocol.Fingerprinting{Headers: []string{"idempotency-key"}}},
	} {
		_, err := protocol.New(memstore.New(), cfg)
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestKeySourceNamesItself(t *testing.T) {
	t.Parallel()
	for want, source := range map[string]protocol.KeySource{
		"Idempotency-Key header":                     {},
		"X-Key header":                               protocol.KeyHeader("X-Key", "X-Alias"),
		"field /idempotency_key of the request body": protocol.KeyField("/idempotency_key"),
		"query parameter request_id":                 protocol.KeyParam("request_id"),
		"event ID":                                   protocol.KeyFunc("event ID", found),
		"content of the request":                     protocol.KeyContent(time.Minute),
	} {
		guard := must(protocol.New(memstore.New(), protocol.Config{Key: source, Required: true}))
		if got := guard.Config().Key.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		for _, p := range guard.Problems() {
			if strings.ContainsAny(p.Detail, "{}") || p.Code == protocol.CodeKeyMissing && p.Detail != "This operation requires the "+want+". Nothing was run." {
				t.Errorf("%s, %s: %s", want, p.Code, p.Detail)
			}
		}
	}
}

// R1 and R48: what the header decides comes first, and then, in this order, the body, the
// source, the key and the scope.
func TestR48OrderOfChecks(t *testing.T) {
	t.Parallel()
	const valid, bad, absent, not = `{"k":"a"}`, `{"k":"not a key"}`, `{}`, `{"k":1`
	form := http.Header{"Content-Type": {"multipart/form-data; boundary=b"}}
	for _, c := range []struct {
		name     string
		required bool
		header   http.Header
		body     string
		scope    string
		status   int    // 0: passes
		steps    string // in their order
	}{
		{"no key", false, nil, absent, "", 0, "body "},
		{"no key, required", true, nil, absent, "tenant", 400, "scope body "},
		{"scope, required", true, nil, valid, "", 403, "scope "},
		{"scope", false, nil, valid, "", 403, "body scope "},
		{"body", false, nil, strings.Repeat(" ", 40) + bad, "", 413, "body "},
		{"grammar", false, nil, bad, "", 400, "body "},
		{"not JSON", false, nil, not, "", 400, "body "},
		{"a form", false, form, valid, "", 400, "body "}, // its length is not known: it may have none
		{"a header line", false, http.Header{"Idempotency-Key": {"not a key"}}, valid, "", 400, ""},
		{"header lines", false, http.Header{"Idempotency-Key": {"a", "a"}}, valid, "", 400, ""},
		{"a header and no scope", false, http.Header{"Idempotency-Key": {"a"}}, valid, "", 403, "scope "},
		{"a header that differs", false, http.Header{"Idempotency-Key": {"b"}}, valid, "tenant", 400, "scope body "},
	} {
		b := setup(t, protocol.Config{Required: c.required, Limits: protocol.Limits{RequestBody: 40}, Key: protocol.KeyField("/k")})
		steps := ""
		header := c.header.Clone()
		if header == nil {
			header = http.Header{}
		}
		if header.Get("Content-Type") == "" {
			header.Set("Content-Type", "application/json")
		}
		rest := strings.NewReader(c.body)
		v := b.guard.Admit(t.Context(), protocol.Request{Method: "POST", Header: header, Length: -1, Body: readerFunc(func(p []byte) (int, error) {
			if !strings.HasSuffix(steps, "body ") {
				steps += "body "
			}
			return rest.Read(p)
		})}, func() (string, error) {
			steps += "scope "
			return c.scope, nil
		})
		if v.Pass != (c.status == 0) || v.Response.Status != c.status || v.Exchange != nil || steps != c.steps {
			t.Errorf("%s: pass %t, status %d after %q; want status %d after %q", c.name, v.Pass, v.Response.Status, steps, c.status, c.steps)
		}
	}
}

// The reason for two keys that differ stays, even if its text has one of them.
func TestKeysThatDifferSaySo(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"the", "key", "another"} {
		b, log := observed(t, protocol.Config{Key: protocol.KeyParam("k")})
		a := b.guard.Admit(t.Context(), protocol.Request{Method: "POST", RawQuery: "k=17", Header: http.Header{"Idempotency-Key": {key}}}, scope)
		if _, err := log.outcomes(); err == nil || !strings.Contains(string(a.Response.Body), "are not the same key") || !strings.Contains(err.Error(), "are not the same key") {
			t.Errorf("the key %q: %s, %v", key, a.Response.Body, err)
		}
	}
}

// A request that passes keeps its body, although it was read.
func TestUnkeyedRequestKeepsItsBody(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Key: protocol.KeyField("/k")})
	var kept []*protocol.Body
	want := func(i int) string { return `{"n":"` + strings.Repeat(string(rune('a'+i)), 1000) + `"}` }
	for i := range 5 {
		a := b.guard.Admit(t.Context(), protocol.Request{
			Method: "POST", Header: http.Header{"Content-Type": {"application/json"}}, Length: -1, Body: strings.NewReader(want(i)),
		}, scope)
		if !a.Pass || a.Body == nil {
			t.Fatalf("admission %+v", a)
		}
		kept = append(kept, a.Body)
	}
	for i, body := range kept { // the memory of none was reused
		if got, err := io.ReadAll(body); err != nil || string(got) != want(i) {
			t.Errorf("body %d is %q, %v", i, got, err)
		}
	}
	header := setup(t, protocol.Config{})
	if a := header.guard.Admit(t.Context(), protocol.Request{Method: "POST", Body: strings.NewReader("x"), Length: 1}, scope); !a.Pass || a.Body != nil {
		t.Errorf("a key in the header needs no body: %+v", a)
	}
}

// R48: no client can send the key of a content, and so answer another client's request.
func TestContentKeyIsOutOfReach(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Key: protocol.KeyContent(time.Minute)})
	a := b.guard.Admit(t.Context(), protocol.Request{Method: "POST", Path: "/orders", Bytes: []byte("x"), Length: 1}, scope)
	wantRun(t, a)
	view, _ := reprise.AttemptFrom(a.Exchange.Context())
	fp := must(protocol.CanonicalJSON(&protocol.Request{Method: "POST", Path: "/orders"}, "", []byte("x")))
	key := "\x00content:" + hex.EncodeToString(fp[:])
	if name, _ := scope(); view.ID() != store.DeriveID(name, "", key) {
		t.Error("the ID is not that of scope and content")
	}
	finish(a.Exchange, 201)
	for _, sent := range []string{key, `"` + key + `"`} {
		a := b.guard.Admit(t.Context(), protocol.Request{Method: "POST", Path: "/orders", Bytes: []byte("x"), Length: 1, Header: http.Header{"Idempotency-Key": {sent}}}, scope)
		if a.Response.Status != 400 {
			t.Errorf("the key of a content was taken from a header: %+v", a)
		}
	}
}

// Without a scope, equal requests of two clients would be one operation.
func TestContentNeedsAScope(t *testing.T) {
	t.Parallel()
	shared := func() (string, error) { return "", protocol.ErrUnscoped }
	for _, required := range []bool{false, true} {
		b := setup(t, protocol.Config{Key: protocol.KeyContent(time.Minute), Required: required})
		req := protocol.Request{Method: "POST", Bytes: []byte("x"), Length: 1}
		if a := b.guard.Admit(t.Context(), req, shared); a.Response.Status != 403 {
			t.Errorf("required %t: %+v", required, a)
		}
		req.Header = http.Header{"Idempotency-Key": {"k"}}
		a := b.guard.Admit(t.Context(), req, shared)
		wantRun(t, a)
		finish(a.Exchange, 201)
	}
}

// FuzzKeyParam compares with net/url: one parameter is the key, and two are refused.
func FuzzKeyParam(f *testing.F) {
	for _, query := range []string{"key=a", "key=a&key=b", "k%65y=%61", "x=1&key=%zz", "key", "&&key=a+b", "key=a;b"} {
		f.Add(query)
	}
	guard := must(protocol.New(memstore.New(), protocol.Config{Key: protocol.KeyParam("key"), Required: true}))
	f.Fuzz(func(t *testing.T, query string) {
		a := guard.Admit(t.Context(), protocol.Request{Method: "POST", RawQuery: query}, func() (string, error) { return "", errors.New("the key was read") })
		var values []string
		for pair := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			if decoded, err := url.QueryUnescape(name); err == nil && decoded == "key" {
				values = append(values, value)
			}
		}
		want := 400
		if len(values) == 1 {
			value, err := url.QueryUnescape(values[0])
			if strings.Contains(value, `"`) {
				return // key_test.go covers the grammar of keys
			}
			if err == nil && bareKey.MatchString(value) {
				want = 403
			}
		}
		if a.Response.Status != want {
			t.Errorf("%q: %d, want %d", query, a.Response.Status, want)
		}
	})
}

var bareKey = regexp.MustCompile(`^[ \t]*[A-Za-z0-9._~:+/=-]{1,255}[ \t]*$`)

// The function of a policy sees the fields and the body. What it finds is a key in the
// grammar of keys, and nothing is none.
func TestKeyFuncFindsTheKey(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Key: protocol.KeyFunc("event ID", func(r *protocol.Request, body []byte) (string, error) {
		return strings.Join(r.Header.Values("Event-Id"), " ") + string(body), nil
	})})
	post := func(id []string, body string) protocol.Admission {
		return b.guard.Admit(t.Context(), protocol.Request{
			Method: "POST", Header: http.Header{"Event-Id": id}, Body: strings.NewReader(body), Length: int64(len(body)),
		}, scope)
	}
	first := post([]string{"event-"}, "17")
	wantRun(t, first)
	name, _ := scope()
	if view, _ := reprise.AttemptFrom(first.Exchange.Context()); view.ID() != store.DeriveID(name, "", "event-17") {
		t.Errorf("the ID is not that of the key that was found: %v", view.ID())
	}
	finish(first.Exchange, 201)
	for _, c := range []struct {
		id     []string
		body   string
		status int // 0: passes
	}{
		{[]string{"event-"}, "17", 201}, {[]string{"event-17"}, "", 422}, {[]string{"not a"}, " key", 400}, {nil, "", 0},
	} {
		if a := post(c.id, c.body); a.Pass != (c.status == 0) || a.Response.Status != c.status {
			t.Errorf("%q and %q: %+v, want %d", c.id, c.body, a, c.status)
		}
	}
}
