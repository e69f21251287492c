package labecho5_test

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"

	repriseecho5 "github.com/reprise-go/reprise/adapters/echo5"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/cost"
)

func TestCostOfFrameworkOverMemory(t *testing.T) { cost.Framework(t, costEcho5) } //nolint:paralleltest // it counts allocations

// costEcho5 is [cost.Handler] in Echo v5, behind the middleware if there is a guard, else
// behind an empty one: before 5.2, Echo wraps the handler anew for each request, which
// costs an allocation with any middleware.
func costEcho5(guard *protocol.Guard) http.Handler {
	e := echo.New()
	if guard != nil {
		e.Use(repriseecho5.Middleware(guard, repriseecho5.Unscoped))
	} else {
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error { return next(c) }
		})
	}
	body := []byte(adaptertest.DefaultBody)
	e.Any("/orders", func(c *echo.Context) error {
		return c.Blob(adaptertest.DefaultStatus, adaptertest.DefaultContentType, body)
	})
	return e
}
