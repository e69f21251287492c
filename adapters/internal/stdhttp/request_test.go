package stdhttp

import (
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

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
