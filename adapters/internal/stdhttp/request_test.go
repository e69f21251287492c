package stdhttp

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestRequestHasEverythingThatTheProtocolReads(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop.test/a%2Fb?x=1", strings.NewReader("body"))
	r.Header.Set("Idempotency-Key", "k")
	r.Header.Set("Content-Length", "4")
	mine := errors.New("mine")
	got := Request(r, func(err error) bool { return errors.Is(err, mine) })
	if got.Method != http.MethodPost || got.Target != "http://shop.test/a%2Fb?x=1" || got.Path != "/a%2Fb" || got.RawQuery != "x=1" || got.Host != "shop.test" {
		t.Errorf("request %+v", got)
	}
	if !slices.Equal(got.Header.Values("Idempotency-Key"), []string{"k"}) || got.Body != r.Body || got.Length != 4 || !got.TooLarge(mine) {
		t.Errorf("request %+v", got)
	}
}

func TestParsedFormIsThatOfAnotherLayer(t *testing.T) {
	t.Parallel()
	for name, encode := range map[string]harness.Form{"urlencoded": harness.URLEncoded, "multipart": harness.Multipart} {
		contentType, body := encode(t, "7")
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		if form := Request(r, TooLarge).Parsed.ParsedForm(); form != nil {
			t.Errorf("%s: %+v before it was parsed", name, form)
		}
		_ = r.FormValue("amount") // parses
		if form := Request(r, TooLarge).Parsed.ParsedForm(); form == nil || !slices.Equal(form.Value["amount"], []string{"7"}) {
			t.Errorf("%s: %+v, want the amount 7", name, form)
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

func TestReturnFormKeepsTheFormOfTheServer(t *testing.T) {
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

// A layer that decodes the body, and removes the fields of the coded one, may leave the
// length of the coded one in the request.
func TestR50LengthThatALayerRemoved(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("body"))
	if got := Request(r, TooLarge).Length; got != -1 {
		t.Errorf("length %d, want none", got)
	}
}
