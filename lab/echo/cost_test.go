package labecho_test

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/cost"
)

func TestCostOfFrameworkOverMemory(t *testing.T) { cost.Framework(t, costEcho) } //nolint:paralleltest // it counts allocations

// costEcho is [cost.Handler] in Echo, behind the middleware if there is a guard, else
// behind an empty one: Echo wraps the handler anew for each request, which costs an
// allocation with any middleware.
func costEcho(guard *protocol.Guard) http.Handler {
	e := echo.New()
	if guard != nil {
		e.Use(repriseecho.Middleware(guard, repriseecho.Unscoped))
	} else {
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error { return next(c) }
		})
	}
	body := []byte(adaptertest.DefaultBody)
	e.Any("/orders", func(c echo.Context) error {
		return c.Blob(adaptertest.DefaultStatus, adaptertest.DefaultContentType, body)
	})
	return e
}
