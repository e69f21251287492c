package repriseecho

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/reprise-go/reprise/core/protocol"
)

// Echo reuses its contexts: a handler that outlived middleware.Timeout may find another
// request in its own. Its writes went to that request, so it has no response to keep, and
// the context is not restored.
func TestContextThatServesAnotherRequest(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	for path, handler := range map[string]echo.HandlerFunc{
		"/silent": func(echo.Context) error { return nil },
		"/writes": created,
		"/fails":  func(echo.Context) error { return echo.ErrTeapot },
	} {
		b.POST(path, b.counted(func(c echo.Context) error {
			w := httptest.NewRecorder()
			c.Reset(c.Request().Clone(t.Context()), w) // as Echo does for the next request
			err := handler(c)
			if path == "/fails" && w.Body.Len() > 0 {
				t.Error("the error was handled before the handler returned")
			}
			return err
		}), func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				request, response := c.Request(), c.Response()
				err := next(c)
				if c.Request() == request || c.Response() == response {
					t.Error("what belongs to another request was replaced")
				}
				if path == "/fails" && c.Response().Committed {
					t.Error("the error went to another request")
				}
				c.SetRequest(request)
				c.SetResponse(response)
				if err == nil {
					err = c.NoContent(http.StatusServiceUnavailable)
				}
				return err
			}
		}, b.guarded)
		b.Afresh("POST", path)
	}
	b.Ran(6)
}

// A handler may leave its request in the context with a derived context.
func TestRequestOfTheHandlerStaysInTheContext(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.POST("/orders", b.counted(func(c echo.Context) error {
		c.SetRequest(c.Request().Clone(t.Context()))
		return created(c)
	}), b.guarded)
	if first, _ := b.Twice("POST", "/orders"); first.Body != createdBody {
		t.Errorf("answered %+v", first)
	}
	b.Ran(1)
}
