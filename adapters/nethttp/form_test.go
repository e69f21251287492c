package reprisehttp

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/protocol"
)

// R22, R24: a form that was parsed before the middleware, here by the scope function, is
// compared, too.
func TestR24FormThatTheScopeParsed(t *testing.T) {
	t.Parallel()
	app := setup(t, protocol.Config{Required: true}, func(r *http.Request) (string, error) {
		_ = r.FormValue("tenant")
		return "tenant", nil
	}, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "paid ", r.FormValue("amount")) //nolint:gosec // no browser shows it
	})
	app.CheckForm("/payments", "urlencoded", harness.URLEncoded)
	app.CheckForm("/payments", "multipart", harness.Multipart)
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
