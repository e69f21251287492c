package repriseecho

import (
	"io"
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// fixture is an Echo on a real listener.
type fixture struct {
	*echo.Echo
	*harness.App

	guarded echo.MiddlewareFunc // the middleware of a guard with the policy of setup
}

func setup(t *testing.T, policy protocol.Config) *fixture {
	t.Helper()
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	b := &fixture{Echo: e, App: harness.New(t, memstore.New(), e)}
	b.guarded = Middleware(b.Guard(policy), Unscoped)
	return b
}

// counted counts the runs of a handler.
func (b *fixture) counted(h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		b.Count()
		return h(c)
	}
}

// created is the handler of most tests.
func created(c echo.Context) error { return c.JSON(http.StatusCreated, map[string]any{"id": 7}) }

const createdBody = `{"id":7}` + "\n"
