package repriseecho

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
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
			if path == "/writes" {
				c.Set(store.ContextKey, t.Context()) // whose run is another
			}
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

// A value that a handler leaves in the context of the request, also in one of the two
// places of its run, makes it no other request.
func TestContextThatServesItsOwnRequest(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	for path, leaves := range map[string]func(echo.Context){
		"/request": func(c echo.Context) { c.SetRequest(c.Request().Clone(t.Context())) },
		"/foreign": func(c echo.Context) { c.Set(store.ContextKey, "ours") },
		"/both": func(c echo.Context) {
			c.SetRequest(c.Request().Clone(t.Context()))
			c.SetResponse(echo.NewResponse(c.Response(), c.Echo()))
		},
	} {
		b.POST(path, b.counted(func(c echo.Context) error {
			leaves(c)
			return created(c)
		}), b.guarded)
		if first, _ := b.Twice("POST", path); first.Body != createdBody {
			t.Errorf("%s: answered %+v", path, first)
		}
	}
	b.Ran(3)
}
