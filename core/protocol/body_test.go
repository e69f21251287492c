package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// The error of an unreadable body, which an observer may log, names the kind of failure,
// and does not quote the client.
func TestErrorsOfABodyDoNotQuoteIt(t *testing.T) {
	t.Parallel()
	for want, cause := range map[string]error{
		"malformed": textproto.ProtocolError(`malformed MIME header: missing colon: "secret"`),
		"early":     fmt.Errorf("chunk secret: %w", io.ErrUnexpectedEOF),
		"in time":   fmt.Errorf("secret: %w", os.ErrDeadlineExceeded),
		"OpError":   &net.OpError{Op: "read", Err: errors.New("secret")},
	} {
		var told []reprise.Event
		observer := reprise.ObserverFunc(func(_ context.Context, e reprise.Event) { told = append(told, e) })
		guard := setup(t, protocol.Config{Engine: reprise.Config{Observer: observer}}).guard
		told = nil
		guard.Admit(t.Context(), protocol.Request{
			Method: "POST", Header: http.Header{"Idempotency-Key": {"k"}},
			Body: io.MultiReader(strings.NewReader("half"), failing{cause}),
		}, scope)
		if len(told) != 1 || told[0].Err == nil {
			t.Fatalf("%s: told of %+v", want, told)
		}
		if text := told[0].Err.Error(); strings.Contains(text, "secret") || !strings.Contains(text, want) || !errors.Is(told[0].Err, cause) {
			t.Errorf("%v is told as %q, want %q in it", cause, text, want)
		}
	}
}

// The limit of a body is inclusive, for a body in any form; a byte more is refused, and
// no record is stored.
func TestR26LimitOfABodyIsIncluded(t *testing.T) {
	t.Parallel()
	const limit = 100
	for name, send := range map[string]func(g *protocol.Guard, n int) protocol.Code{
		"a reader": func(g *protocol.Guard, n int) protocol.Code {
			return admissionCode(t, g.Admit(t.Context(), post(&source{t: t, left: n, end: io.EOF}), scope))
		},
		"bytes": func(g *protocol.Guard, n int) protocol.Code {
			r := post(nil)
			r.Bytes = make([]byte, n)
			return admissionCode(t, g.Admit(t.Context(), r, scope))
		},
		"a declared length": func(g *protocol.Guard, n int) protocol.Code {
			r := post(&source{t: t, left: n, end: io.EOF})
			r.Length = int64(n)
			return admissionCode(t, g.Admit(t.Context(), r, scope))
		},
		"the values of a form": func(g *protocol.Guard, n int) protocol.Code {
			r := post(nil)
			r.Form = func() (*multipart.Form, error) {
				return &multipart.Form{Value: map[string][]string{"name": {strings.Repeat("v", n-4)}}}, nil
			}
			return admissionCode(t, g.Admit(t.Context(), r, scope))
		},
		"a message": func(g *protocol.Guard, n int) protocol.Code {
			call := protocol.Call{
				Procedure: "/a.B/C", Metadata: http.Header{"Idempotency-Key": {"k"}},
				Message: func() ([]byte, error) { return make([]byte, n), nil },
			}
			a := g.AdmitCall(t.Context(), call, scope)
			switch {
			case a.Exchange != nil:
				a.Exchange.AbandonCall(false)
				a.Exchange.Close()
				return ""
			case a.Result.Code == protocol.CodeRequestTooLarge.Problem().GRPC:
				return protocol.CodeRequestTooLarge
			default:
				return protocol.Code(fmt.Sprint(a.Result))
			}
		},
	} {
		for n, want := range map[int]protocol.Code{limit - 1: "", limit: "", limit + 1: protocol.CodeRequestTooLarge, 10 * limit: protocol.CodeRequestTooLarge} {
			if got := send(setup(t, protocol.Config{Limits: protocol.Limits{RequestBody: limit}}).guard, n); got != want {
				t.Errorf("%s of %d bytes: %q, want %q", name, n, got, want)
			}
		}
	}
}

// post is a request with a key and a body.
func post(body io.Reader) protocol.Request {
	return protocol.Request{Method: "POST", Path: "/orders", Header: http.Header{"Idempotency-Key": {"k"}}, Body: body}
}

// admissionCode releases the exchange of a request that runs, and returns the code of the
// problem with another one.
func admissionCode(t *testing.T, a protocol.Admission) protocol.Code {
	t.Helper()
	if a.Exchange != nil {
		finish(a.Exchange, 503)
		return ""
	}
	w := httptest.NewRecorder()
	a.Response.Write(w.Header(), w)
	return problemCode(w)
}

// An outer layer may have its own limit, and reports it by its error.
func TestR26LimitOfAnOuterLayer(t *testing.T) {
	t.Parallel()
	large := errors.New("too large for the outer layer")
	isLarge := func(err error) bool { return errors.Is(err, large) }
	for _, c := range []struct {
		cause error
		ask   func(error) bool
		want  protocol.Code
	}{
		{large, isLarge, protocol.CodeRequestTooLarge},
		{large, nil, protocol.CodeRequestInvalid},
		{io.ErrUnexpectedEOF, isLarge, protocol.CodeRequestInvalid},
		{fmt.Errorf("chunk 3: %w", io.EOF), isLarge, protocol.CodeRequestInvalid}, // io.EOF itself is an end, as for io.Copy
		{io.EOF, func(error) bool { return true }, ""},                            // it did not fail
	} {
		r := post(io.MultiReader(strings.NewReader("half"), failing{c.cause}))
		r.TooLarge = c.ask
		if got := admissionCode(t, setup(t, protocol.Config{}).guard.Admit(t.Context(), r, scope)); got != c.want {
			t.Errorf("%v: %q, want %q", c.cause, got, c.want)
		}
	}
}

// parsed is a request of which a framework keeps the form or the bytes.
type parsed struct {
	form  *multipart.Form
	bytes []byte
}

func (p parsed) ParsedForm() *multipart.Form { return p.form }
func (p parsed) ParsedBytes() []byte         { return p.bytes }

// asked fails the test if the form of a request is read needlessly.
type asked struct{ t *testing.T }

func (a asked) ParsedForm() *multipart.Form {
	a.t.Error("the form of a request with a whole body was asked for")
	return nil
}

func (a asked) ParsedBytes() []byte {
	a.t.Error("the bytes of a request with a whole body were asked for")
	return nil
}

func values(name string, list ...string) *multipart.Form {
	return &multipart.Form{Value: map[string][]string{name: list}}
}

// R50: a body of which a layer outside consumed a part is refused, unless the framework
// keeps its form or its bytes.
func TestR50BodyThatWasReadBefore(t *testing.T) {
	t.Parallel()
	file := &multipart.Form{File: map[string][]*multipart.FileHeader{"f": {{Size: 5}}}} // which cannot be opened
	form := parsed{form: values("a", "1")}
	for _, c := range []struct {
		name   string
		body   string // the rest
		parsed interface {
			ParsedForm() *multipart.Form
			ParsedBytes() []byte
		}
		length int64
		coding string
		want   protocol.Code
	}{
		{"a form", "", form, 9, "", ""},
		{"a form of a value and a file field", "", parsed{form: &multipart.Form{
			Value: map[string][]string{"a": {"1"}}, File: map[string][]*multipart.FileHeader{"f": nil},
		}}, 9, "", ""},
		{"a form without a declared length", "", form, -1, "", ""},
		{"a form and its epilogue", "\r\nepilogue", form, 90, "", ""},
		{"a form and its epilogue, without a declared length", "\r\nepilogue", form, -1, "", ""},
		{"a form that is too large", "", parsed{form: values("a", strings.Repeat("x", 100))}, 9, "", protocol.CodeRequestTooLarge},
		{"a form whose file is gone", "", parsed{form: file}, 9, "", protocol.CodeRequestInvalid},
		{"kept bytes", "", parsed{bytes: []byte("123456789")}, 9, "", ""},
		{"kept bytes without a declared length", "", parsed{bytes: []byte("1")}, -1, "", ""},
		{"kept bytes of a coded body", "", parsed{bytes: []byte("1")}, 9, "gzip", ""},
		{"kept bytes that are too many", "", parsed{bytes: make([]byte, 101)}, -1, "", protocol.CodeRequestTooLarge},
		{"kept bytes of a rest", "", parsed{bytes: []byte("12345678")}, 9, "", protocol.CodeRequestInvalid},
		{"kept bytes of a blank rest", "", parsed{bytes: []byte("\n")}, -1, "", protocol.CodeRequestInvalid},
		{"a body that is gone", "", parsed{}, 1, "", protocol.CodeRequestInvalid},
		{"a body that is gone, of a framework that keeps none", "", nil, 1, "", protocol.CodeRequestInvalid},
		{"a body that is gone, with an empty form", "", parsed{form: new(multipart.Form)}, 1, "", protocol.CodeRequestInvalid},
		{"a body that is gone, without a declared length", "", parsed{}, -1, "", protocol.CodeRequestInvalid},
		{"a coded body that is gone", "", parsed{}, 20, "gzip", protocol.CodeRequestInvalid},
		{"a rest", "12345678", parsed{}, 9, "", protocol.CodeRequestInvalid},
		{"a rest of a body coded as identity", "12345678", parsed{}, 9, "identity", protocol.CodeRequestInvalid},
		{"a blank rest", "\n", parsed{}, 9, "", protocol.CodeRequestInvalid},
		{"a blank rest without a declared length", " \t\r\n", parsed{}, -1, "", protocol.CodeRequestInvalid},
		{"a blank rest of a coded body", "\n", parsed{}, 20, "gzip", protocol.CodeRequestInvalid},
		{"a decoded body that is shorter than the coded one", "12345678", parsed{}, 9, "gzip", ""},
		{"a decoded body that is longer than the coded one", "123456789", parsed{}, 1, "gzip", ""},
		{"no body", "", parsed{}, 0, "", ""},
		{"no body in a coding", "", parsed{}, 0, "gzip", ""},
		{"a body that is gone, without a Content-Type", "", parsed{}, 1, "", protocol.CodeRequestInvalid},
		{"a blank rest without a declared length, without a Content-Type", "\n", parsed{}, -1, "", protocol.CodeRequestInvalid},
		{"no body in a coding without a declared length, without a Content-Type", "", parsed{}, -1, "gzip", protocol.CodeRequestInvalid},
		{"no body without a declared length, without a Content-Type", "", parsed{}, -1, "", ""},
		{"no body of a framework that keeps none, without a Content-Type", "", nil, -1, "", ""},
		{"kept bytes that are too many, without a Content-Type", "", parsed{bytes: make([]byte, 101)}, -1, "", protocol.CodeRequestTooLarge},
		{"a form that is too large, without a Content-Type", "", parsed{form: values("a", strings.Repeat("x", 101))}, -1, "", protocol.CodeRequestTooLarge},
		{"a body", "b", asked{t}, 1, "", ""},
		{"a blank body", "\n", asked{t}, 1, "", ""},
		{"a body without a declared length", "b", parsed{}, -1, "", ""},
	} {
		r := post(strings.NewReader(c.body))
		r.Parsed, r.Length = c.parsed, c.length
		if !strings.HasSuffix(c.name, ", without a Content-Type") {
			r.Header.(http.Header)["Content-Type"] = []string{"application/json"}
		}
		if c.coding != "" {
			r.Header.(http.Header)["Content-Encoding"] = []string{c.coding}
		}
		if got := admissionCode(t, setup(t, protocol.Config{Limits: protocol.Limits{RequestBody: 100}}).guard.Admit(t.Context(), r, scope)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A form is compared by its parts, for any parser.
func TestFormsAreCompared(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	early := func(form *multipart.Form, err error) protocol.Request {
		r := post(nil)
		r.Form = func() (*multipart.Form, error) { return form, err }
		return r
	}
	late := func(form *multipart.Form) protocol.Request {
		r := post(strings.NewReader(""))
		r.Parsed = parsed{form: form}
		return r
	}
	if got := admissionCode(t, b.guard.Admit(t.Context(), early(nil, errors.New("malformed")), scope)); got != protocol.CodeRequestInvalid {
		t.Errorf("a form that cannot be parsed: %q", got)
	}
	first := b.guard.Admit(t.Context(), early(values("a", "1", "2"), nil), scope)
	finish(first.Exchange, 201)
	for name, c := range map[string]struct {
		r    protocol.Request
		want int
	}{
		"the same":               {early(values("a", "1", "2"), nil), 201},
		"the same, parsed later": {late(values("a", "1", "2")), 201},
		"another":                {early(values("a", "1", "3"), nil), 422},
		"another, parsed later":  {late(values("a", "2", "1")), 422},
		"none":                   {late(nil), 422},
	} {
		if a := b.guard.Admit(t.Context(), c.r, scope); a.Exchange != nil || a.Response.Status != c.want {
			t.Errorf("%s: %d, want %d", name, a.Response.Status, c.want)
		}
	}
}

// The notation of a form that a layer outside parsed is for the fingerprint alone: no
// handler reads it, and no key is looked for in it.
func TestNotationOfAFormIsNotABody(t *testing.T) {
	t.Parallel()
	find := protocol.KeyFunc("event ID", func(_ *protocol.Request, body []byte) (string, error) {
		if string(body) != "a=1" {
			t.Errorf("a key was looked for in %q", body)
		}
		return "", nil
	})
	const passes = protocol.Code("passes")
	for _, c := range []struct {
		name, body string // what the layer left, or put back
		length     int64
		key        protocol.KeySource
		want       protocol.Code
	}{
		{"drained, with a key in the header", "", 3, protocol.KeySource{}, ""},
		{"put back, with a key in the header", "a=1", 3, protocol.KeySource{}, ""},
		{"put back, of unknown length", "a=1", -1, protocol.KeySource{}, ""},
		{"drained, where the key is looked for", "", 3, find, protocol.CodeKeyInvalid},
		{"put back, of unknown length, where the key is looked for", "a=1", -1, find, passes},
		{"drained, where the key is looked for, with one in the header", "", 3, find, ""},
		{"put back, of unknown length, where the key is looked for, with one in the header", "a=1", -1, find, ""},
		{"put back, without a key", "a=1", 3, find, passes},
	} {
		r := post(strings.NewReader(c.body))
		r.Parsed, r.Length = parsed{form: values("a", "1")}, c.length
		if c.key.String() == "event ID" && !strings.HasSuffix(c.name, "in the header") {
			delete(r.Header.(http.Header), "Idempotency-Key")
		}
		a := setup(t, protocol.Config{Key: c.key}).guard.Admit(t.Context(), r, scope)
		var body *protocol.Body
		got := passes
		switch {
		case a.Pass:
			body = a.Body
		case a.Exchange != nil:
			body, got = a.Exchange.Body(), ""
			t.Cleanup(a.Exchange.Close)
			t.Cleanup(func() { a.Exchange.Finish(protocol.Captured{Status: 201}) })
		default:
			got = admissionCode(t, a)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if body == nil {
			if c.want != protocol.CodeKeyInvalid {
				t.Errorf("%s: the handler gets no body", c.name)
			}
			continue
		}
		if b, err := io.ReadAll(body); err != nil || string(b) != c.body {
			t.Errorf("%s: the handler reads %q, %v", c.name, b, err)
		}
	}
}
