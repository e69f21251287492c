//go:build !without_echo

package frameworks

import (
	"net/http"

	"github.com/labstack/echo/v4"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/protocol"
)

func init() { costFrameworks["echo"] = costEcho }

// costEcho is [costHandler] in Echo, behind the middleware if there is a guard, else
// behind one that does nothing: Echo wraps the handler anew for each request, which costs
// an allocation whatever the middleware is.
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
