package reprisehttp

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/protocol"
)

// paying serves a handler whose scope is found by reading the request, which happens
// before the middleware reads the body.
func paying(t *testing.T, read func(*http.Request)) *harness.App {
	t.Helper()
	scope := func(r *http.Request) (string, error) { read(r); return "tenant", nil }
	return setup(t, protocol.Config{Required: true}, scope, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "paid ", r.FormValue("amount")) //nolint:gosec // no browser shows it
	})
}

// R22, R24: a form that was parsed before the middleware is compared, too.
func TestR24FormThatTheScopeParsed(t *testing.T) {
	t.Parallel()
	app := paying(t, func(r *http.Request) { _ = r.FormValue("tenant") })
	app.CheckForm("/payments", "urlencoded", harness.URLEncoded)
	app.CheckForm("/payments", "multipart", harness.Multipart)
}

// R27: a body that another layer consumed cannot be compared.
func TestR27BodyThatIsGone(t *testing.T) {
	t.Parallel()
	app := paying(t, func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	for body, want := range map[string]int{`{"amount":1}`: http.StatusBadRequest, "": http.StatusOK} {
		got, err := app.Try(app.Request("POST", "/payments", body, "Idempotency-Key", rand.Text(), "Content-Type", "application/json"))
		if err != nil || got.Status != want {
			t.Errorf("body %q: %+v, %v, want %d", body, got, err, want)
		}
	}
}

// The server removes the temporary files of a form when the request has ended. It looks
// for them at its own request, and the handler parsed a copy.
func TestFilesOfAFormAreRemoved(t *testing.T) {
	files := harness.TempFiles(t)
	app := setup(t, protocol.Config{}, Unscoped, func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil { //nolint:gosec // the middleware bounds the body
			t.Error(err)
		}
		files.Check(t, 1) // while the handler runs
	})
	app.CheckUpload("/upload", 64<<10, files)
}

// R50: a body of which a layer outside consumed a part is refused.
func TestR50ConsumedBody(t *testing.T) {
	t.Parallel()
	paying(t, harness.DecodeJSON).CheckConsumed("/payments")
}

// R21c: curl chooses a new boundary for each upload, and a retry is the same request.
func TestR21cUploadsOfCurl(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed; TestR21cBoundariesDoNotCount of core/protocol draws boundaries too")
	}
	path := filepath.Join(t.TempDir(), "x.bin")
	if err := os.WriteFile(path, harness.Pattern(5000), 0o600); err != nil {
		t.Fatal(err)
	}
	types := map[string]bool{}
	app := setup(t, protocol.Config{Required: true}, func(r *http.Request) (string, error) {
		types[r.Header.Get("Content-Type")] = true
		return "tenant", nil
	}, func(w http.ResponseWriter, r *http.Request) {
		_, header, err := r.FormFile("file")
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(w, header.Size) //nolint:gosec // no browser shows it
	})
	upload := func(fields ...string) string {
		args := []string{"-s", "-S", "-i", "-H", "Idempotency-Key: curl", app.Request("POST", "/upload", "").URL.String()}
		for _, field := range fields {
			args = append(args, "-F", field)
		}
		out, err := exec.CommandContext(t.Context(), curl, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	file := "file=@" + path
	first, again, other := upload(file, "title=tea"), upload(file, "title=tea"), upload(file, "title=milk")
	if !strings.Contains(first, "200 OK") || !strings.Contains(again, "Idempotent-Replayed: true") || !strings.HasSuffix(again, "5000") || !strings.Contains(other, "422 ") {
		t.Errorf("the upload: %s\nits retry: %s\nanother one: %s", first, again, other)
	}
	if len(types) != 3 {
		t.Errorf("curl sent the types %v, want three boundaries", types)
	}
}
