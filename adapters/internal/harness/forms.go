package harness

import (
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
)

// A Form encodes a form with the field amount.
type Form func(t testing.TB, amount string) (contentType, body string)

// URLEncoded is a [Form] as browsers send it.
func URLEncoded(_ testing.TB, amount string) (contentType, body string) {
	return "application/x-www-form-urlencoded", url.Values{"amount": {amount}}.Encode()
}

// Multipart is a [Form] in parts.
func Multipart(tb testing.TB, amount string) (contentType, body string) {
	tb.Helper()
	return encode(tb, func(w *multipart.Writer) error { return w.WriteField("amount", amount) })
}

// encode returns a multipart body, always with the same boundary.
func encode(tb testing.TB, add func(*multipart.Writer) error) (contentType, body string) {
	tb.Helper()
	var b strings.Builder
	w := multipart.NewWriter(&b)
	for _, step := range []func() error{
		func() error { return w.SetBoundary("the-boundary") },
		func() error { return add(w) },
		w.Close,
	} {
		if err := step(); err != nil {
			tb.Fatal(err)
		}
	}
	return w.FormDataContentType(), b.String()
}

// CheckForm fails the test unless a form that was parsed before the middleware reads it
// reaches the handler at path, which responds with "paid " and the amount, and is
// compared with that of the first request.
func (a *App) CheckForm(path, key string, form Form) {
	a.tb.Helper()
	for _, row := range []struct {
		amount string
		status int
		body   string // any if empty
	}{{"1", http.StatusOK, "paid 1"}, {"1", http.StatusOK, "paid 1"}, {"1000", http.StatusUnprocessableEntity, ""}} {
		contentType, body := form(a.tb, row.amount)
		got, err := a.Try(a.Request("POST", path, body, "Idempotency-Key", key, "Content-Type", contentType))
		if err != nil || got.Status != row.status || row.body != "" && got.Body != row.body {
			a.tb.Errorf("%s with the amount %s: %+v, %v", key, row.amount, got, err)
		}
	}
}

// Files counts the temporary files of the process.
type Files struct{ dir string }

// TempFiles directs the temporary files of the process into an empty folder until the
// test ends.
func TempFiles(t *testing.T) Files {
	t.Helper()
	f := Files{t.TempDir()}
	t.Setenv("TMPDIR", f.dir)
	return f
}

// Check fails the test unless there are n temporary files.
func (f Files) Check(t *testing.T, n int) {
	t.Helper()
	if entries, err := os.ReadDir(f.dir); err != nil || len(entries) != n {
		t.Errorf("%d temporary files, want %d; %v", len(entries), n, err)
	}
}

// CheckUpload fails the test unless the file f of n bytes is uploaded to path, and no
// temporary file is left afterwards.
func (a *App) CheckUpload(path string, n int, files Files) {
	a.tb.Helper()
	contentType, body := encode(a.tb, func(w *multipart.Writer) error {
		part, err := w.CreateFormFile("f", "f.bin")
		if err == nil {
			_, err = part.Write(Pattern(n))
		}
		return err
	})
	got, err := a.Try(a.Request("POST", path, body, "Content-Type", contentType, "Idempotency-Key", "k"))
	if err != nil || got.Status != http.StatusOK {
		a.tb.Fatalf("%+v, %v", got, err)
	}
	a.Eventually(func() bool {
		entries, err := os.ReadDir(files.dir)
		return err == nil && len(entries) == 0
	})
}
