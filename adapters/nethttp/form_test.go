package reprisehttp

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// formServer takes its scope from a field of the form, which parses the body before the
// middleware reads it.
func formServer(t *testing.T, read func(*http.Request)) func(key, contentType, body string) (status int, answer string) {
	t.Helper()
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close(t.Context()) })
	scope := func(r *http.Request) (string, error) { read(r); return "tenant", nil }
	handler := Middleware(guard, scope)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "paid ", r.FormValue("amount")) //nolint:gosec // nobody shows it
	}))
	return func(key, contentType, body string) (int, string) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
}

func multipartBody(t *testing.T, amount string) (contentType, body string) {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	if err := form.SetBoundary("the-boundary"); err != nil {
		t.Fatal(err)
	}
	if err := form.WriteField("amount", amount); err != nil {
		t.Fatal(err)
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return form.FormDataContentType(), b.String()
}

// R22, R24: a form that was parsed before the middleware is compared all the same.
func TestR24FormThatTheScopeParsed(t *testing.T) {
	t.Parallel()
	send := formServer(t, func(r *http.Request) { _ = r.FormValue("tenant") })
	type form = func(amount string) (contentType, body string)
	for name, make := range map[string]form{
		"urlencoded": func(amount string) (string, string) {
			return "application/x-www-form-urlencoded", "amount=" + amount
		},
		"multipart": func(amount string) (string, string) { return multipartBody(t, amount) },
	} {
		contentType, body := make("1")
		for range 2 {
			if status, answer := send(name, contentType, body); status != http.StatusOK || answer != "paid 1" {
				t.Errorf("%s: %d %q", name, status, answer)
			}
		}
		contentType, body = make("1000")
		if status, answer := send(name, contentType, body); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: another amount: %d %q, want 422", name, status, answer)
		}
	}
}

// R27: a body that somebody read and left nothing of cannot be compared.
func TestR27BodyThatIsGone(t *testing.T) {
	t.Parallel()
	send := formServer(t, func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	if status, answer := send("k", "application/json", `{"amount":1}`); status != http.StatusBadRequest {
		t.Errorf("%d %q, want 400", status, answer)
	}
	if status, answer := send("empty", "application/json", ""); status != http.StatusOK {
		t.Errorf("an empty body: %d %q", status, answer)
	}
}
