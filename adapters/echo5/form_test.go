package repriseecho5

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/reprise-go/reprise/core/protocol"
)

// R22, R24: a form that a layer outside parsed is compared all the same.
func TestR24FormThatALayerOutsideParsed(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	parsing := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			_ = c.FormValue("csrf")
			return next(c)
		}
	}
	b.POST("/payments", b.counted(func(c *echo.Context) error {
		return c.String(http.StatusOK, "paid "+c.FormValue("amount"))
	}), parsing, b.guarded)
	for _, row := range []struct {
		body, answer string
		status       int
	}{{"amount=1", "paid 1", 200}, {"amount=1", "paid 1", 200}, {"amount=1000", "", 422}} {
		a, err := b.try(b.request("POST", "/payments", row.body, "Idempotency-Key", "k", "Content-Type", "application/x-www-form-urlencoded"))
		if err != nil || a.status != row.status || row.answer != "" && a.body != row.answer {
			t.Errorf("%s: %+v, %v", row.body, a, err)
		}
	}
	b.ran(1)
}
