package stdhttp

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

func TestRequestHasEverythingThatTheProtocolReads(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop.test/a%2Fb?x=1", strings.NewReader("body"))
	r.Header.Set("Idempotency-Key", "k")
	mine := errors.New("mine")
	got := Request(r, func(err error) bool { return errors.Is(err, mine) })
	if got.Method != "POST" || got.Target != "http://shop.test/a%2Fb?x=1" || got.Path != "/a%2Fb" || got.RawQuery != "x=1" || got.Host != "shop.test" {
		t.Errorf("request %+v", got)
	}
	if !slices.Equal(got.Header.Values("Idempotency-Key"), []string{"k"}) || got.Body != r.Body || got.Length != 4 || !got.TooLarge(mine) {
		t.Errorf("request %+v", got)
	}
}

func TestParsedFormIsThatOfAnotherLayer(t *testing.T) {
	t.Parallel()
	form := &multipart.Form{Value: map[string][]string{"amount": {"2"}}}
	for name, row := range map[string]struct {
		r    *http.Request
		want string
	}{
		"nothing was parsed": {&http.Request{}, ""},
		"urlencoded":         {&http.Request{PostForm: url.Values{"amount": {"1"}}}, "1"},
		"multipart":          {&http.Request{PostForm: url.Values{"amount": {"1"}}, MultipartForm: form}, "2"},
	} {
		row.r.URL = &url.URL{}
		got := Request(row.r, TooLarge).Parsed.ParsedForm()
		if (got == nil) != (row.want == "") || got != nil && got.Value["amount"][0] != row.want {
			t.Errorf("%s: %+v, want the amount %q", name, got, row.want)
		}
	}
}

func TestTooLargeKnowsTheErrorOfMaxBytesReader(t *testing.T) {
	t.Parallel()
	_, err := io.ReadAll(http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("body")), 1))
	if !TooLarge(err) || TooLarge(io.ErrUnexpectedEOF) || TooLarge(nil) {
		t.Errorf("TooLarge is %v of %v, %v of another error", TooLarge(err), err, TooLarge(io.ErrUnexpectedEOF))
	}
}

func TestInnerHasContextAndBodyOfTheExchange(t *testing.T) {
	t.Parallel()
	serve(t, func(_ *Writer, r *http.Request, x *protocol.Exchange) {
		inner := Inner(r, x)
		if body, err := io.ReadAll(inner.Body); err != nil || string(body) != "body" {
			t.Errorf("body %q, %v", body, err)
		}
		if inner.Context() != x.Context() || r.Context() == x.Context() || inner.Body == r.Body {
			t.Error("the request of the server was changed, or that of the handler is not of the exchange")
		}
	}).Twice("POST", "/")
}

func TestReturnFormKeepsWhatTheServerHas(t *testing.T) {
	t.Parallel()
	first, second := new(multipart.Form), new(multipart.Form)
	outer := &http.Request{MultipartForm: first}
	if ReturnForm(outer, &http.Request{}); outer.MultipartForm != first {
		t.Error("a handler that parsed nothing took the form away")
	}
	if ReturnForm(outer, &http.Request{MultipartForm: second}); outer.MultipartForm != second {
		t.Error("the form of the handler is not returned")
	}
}
