package reprisehttp

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
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
	paying(t, harness.DecodeJSON).CheckConsumed("/payments", false)
}
