package reprisehttp_test

import (
	"bytes"
	"context"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// The server removes the temporary files of a form when the request has ended. It looks
// for them at its own request, and the handler parsed a copy.
func TestFilesOfAFormAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	guard, err := protocol.New(memstore.New(), protocol.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close(context.WithoutCancel(t.Context())) })
	files := func() int {
		entries, err := os.ReadDir(os.Getenv("TMPDIR"))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	during := 0
	server := httptest.NewServer(reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil { //nolint:gosec // the middleware bounds the body
			t.Error(err)
		}
		during = files()
	})))

	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreateFormFile("file", "large")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.Write(make([]byte, 64<<10))
	_ = form.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, &body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", form.FormDataContentType())
	request.Header.Set("Idempotency-Key", "form")
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	server.Close() // waits for the request to end
	if during != 1 || files() != 0 {
		t.Errorf("%d temporary files while the handler ran, want 1; %d after it, want none", during, files())
	}
}
