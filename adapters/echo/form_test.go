package repriseecho

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/protocol"
)

// R22, R24: a form that a layer outside parsed is compared, too.
func TestR24FormThatALayerOutsideParsed(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	parsing := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			_ = c.FormValue("csrf")
			return next(c)
		}
	}
	b.POST("/payments", b.counted(func(c echo.Context) error {
		return c.String(http.StatusOK, "paid "+c.FormValue("amount"))
	}), parsing, b.guarded)
	b.CheckForm("/payments", "k", harness.URLEncoded)
	b.Ran(1)
}

// The server removes the files of a form that was parsed from its own request, so it has
// to learn of those of the handler's.
func TestFilesOfAFormAreRemoved(t *testing.T) {
	files := harness.TempFiles(t)
	b := setup(t, protocol.Config{Limits: protocol.Limits{RequestBody: 40 << 20}})
	b.POST("/upload", func(c echo.Context) error {
		form, err := c.MultipartForm()
		if err != nil || len(form.File["f"]) != 1 {
			t.Errorf("form %v, %v", form, err)
		}
		files.Check(t, 1) // while the handler runs
		return err
	}, b.guarded)
	b.CheckUpload("/upload", 33<<20, files) // Echo keeps 32 MiB in memory
}

// R50: a body of which a layer outside consumed a part is refused.
func TestR50ConsumedBody(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	decoding := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			harness.DecodeJSON(c.Request())
			return next(c)
		}
	}
	b.POST("/payments", b.counted(func(c echo.Context) error { return c.NoContent(http.StatusOK) }), decoding, b.guarded)
	b.CheckConsumed("/payments", false)
	b.Ran(0)
}
