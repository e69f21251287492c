package repriseclient

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestNewKeyIsARandomUUID(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := make(map[string]bool)
	for range 1000 {
		key := NewKey()
		if !form.MatchString(key) || seen[key] {
			t.Fatalf("%q is no new UUID of version 4", key)
		}
		seen[key] = true
	}
}

func TestAllAttemptsCarryOneKey(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		service Service
		context string
		header  string
		want    string // empty: generated
	}{
		"generated":             {},
		"from the context":      {context: "order-7", want: `"order-7"`},
		"escaped":               {context: `a "b" \c`, want: `"a \"b\" \\c"`},
		"from the header":       {header: "order-8", want: "order-8"},
		"quoted header":         {header: ` "order-8";v=1 `, want: `"order-8";v=1`},
		"both, and the same":    {context: "order-9", header: `"order-9"`, want: `"order-9"`},
		"Stripe, generated":     {service: Stripe()},
		"Stripe, header":        {service: Stripe(), header: "order-8", want: "order-8"},
		"Stripe, context":       {service: Stripe(), context: "order-7", want: "order-7"},
		"Adyen, context":        {service: Adyen(), context: "order-7", want: "order-7"},
		"another header's name": {service: Service{Header: "X-Request-Key"}, context: "order-7", want: `"order-7"`},
	} {
		inBubble(t, name, func(t *testing.T) {
			base := &fake{answer: failTimes(4)}
			transport := newTransport(t, base, Config{Service: test.service})
			ctx := t.Context()
			if test.context != "" {
				ctx = WithKey(ctx, test.context)
			}
			req := post(ctx, t, strings.NewReader("{}"))
			field := transport.service.Header
			if test.header != "" {
				req.Header.Set(field, test.header)
			}
			before := req.Header.Clone()
			resp, _ := do(t, transport, req)
			keys := base.keys(field)
			if len(keys) != 1 || base.attempts() != 5 {
				t.Fatalf("%d attempts carried the keys %q, want 5 with one", base.attempts(), keys)
			}
			if test.want != "" && keys[0] != test.want {
				t.Errorf("sent %q, want %q", keys[0], test.want)
			}
			if bare := strings.Trim(keys[0], `"`); test.want == "" && (len(bare) != 36 || (bare == keys[0]) != transport.service.Bare) {
				t.Errorf("generated %q", keys[0])
			}
			sent := resp.Request.Header.Get(field)
			if key, err := decode(sent); sent != keys[0] || err != nil || KeyOf(resp) != key {
				t.Errorf("the request of the response has the key %q, and KeyOf is %q, want %q", sent, KeyOf(resp), keys[0])
			}
			if !slices.Equal(req.Header.Values(field), before.Values(field)) {
				t.Error("the caller's request was changed")
			}
		})
	}
}

func TestBadKeysAreRefusedBeforeTheFirstAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		service Service
		context *string
		header  []string
		newKey  func() string
	}{
		"empty":                       {context: new(string)},
		"too long":                    {context: ptr(strings.Repeat("secret", 43))},
		"too long for Adyen":          {service: Adyen(), context: ptr(strings.Repeat("secret", 11))},
		"a control byte":              {context: ptr("secret\n")},
		"not ASCII":                   {context: ptr("secret\u00e9")},
		"a space where it is bare":    {service: Stripe(), context: ptr("secret secret")},
		"quotes where it is bare":     {service: Stripe(), header: []string{`"secret"`}},
		"context and header disagree": {context: ptr("secret"), header: []string{"another-secret"}},
		"two lines":                   {header: []string{"secret", "secret"}},
		"an empty header":             {header: []string{""}},
		"an empty string":             {header: []string{`""`}},
		"an unbalanced quote":         {header: []string{`"secret`}},
		"a bad escape":                {header: []string{`"secret\x"`}},
		"bytes behind the quote":      {header: []string{`"secret"secret`}},
		"nothing from NewKey":         {newKey: func() string { return "" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := &fake{answer: failTimes(0)}
			transport := newTransport(t, base, Config{Service: test.service, NewKey: test.newKey})
			ctx := t.Context()
			if test.context != nil {
				ctx = WithKey(ctx, *test.context)
			}
			body := &closing{Reader: strings.NewReader("{}")}
			req := post(ctx, t, body)
			if test.header != nil {
				req.Header[http.CanonicalHeaderKey(transport.service.Header)] = test.header
			}
			err := fails(t, transport, req)
			var notSent *NotSentError
			if !errors.As(err, &notSent) || notSent.Attempts != 0 || base.attempts() != 0 {
				t.Errorf("%d attempts and %v, want none and a NotSentError", base.attempts(), err)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has the key: %v", err)
			}
			if body.times() == 0 {
				t.Error("the body was not closed")
			}
		})
	}
}

func TestOtherMethodsPassUntouched(t *testing.T) {
	t.Parallel()
	for method, listed := range map[string][]string{"": nil, "GET": {"POST", "HEAD"}, "HEAD": nil, "OPTIONS": nil, "PUT": nil, "DELETE": nil, "post": nil} {
		var seen *http.Request
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			seen = req
			return response(http.StatusServiceUnavailable, ""), nil
		})
		transport := newTransport(t, base, Config{Methods: listed})
		req := post(WithKey(t.Context(), "order-7"), t, nil)
		req.Method = method
		resp, _ := do(t, transport, req)
		if seen != req || req.Header.Get("Idempotency-Key") != "" || Attempts(resp) != 0 || GaveUp(resp) {
			t.Errorf("%q was not passed untouched", method)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func ptr[T any](v T) *T { return &v }

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{``, `a`, `"a"`, `"a\"b"`, `"a`, `"a";p=1`, `"\`, `"\x"`} {
		f.Add(seed)
	}
	transport := newTransport(f, &fake{}, Config{})
	f.Fuzz(func(t *testing.T, value string) {
		key, err := decode(value)
		if err != nil || transport.check(key) != nil {
			return
		}
		if again, err := decode(transport.encode(key)); err != nil || again != key {
			t.Errorf("%q was encoded and decoded to %q, %v", key, again, err)
		}
	})
}
