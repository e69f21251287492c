package repriseecho5

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/reprise-go/reprise/core/protocol"
)

// Echo reuses its contexts and their responses: a handler that outlived a layer which did
// not wait for it may find another request in its own. Its writes went to that request,
// so it has no response to keep or send, and the context is not restored.
func TestContextThatServesAnotherRequest(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	for path, handler := range map[string]echo.HandlerFunc{
		"/silent": func(*echo.Context) error { return nil },
		"/writes": created,
		"/fails":  func(*echo.Context) error { return echo.ErrForbidden },
	} {
		b.POST(path, b.counted(func(c *echo.Context) error {
			c.Reset(c.Request().Clone(t.Context()), httptest.NewRecorder()) // as Echo does for the next request
			return handler(c)
		}), func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				r := response(t, c)
				request, client := c.Request(), r.ResponseWriter
				if err := next(c); err != nil {
					t.Errorf("%s: the error of another request: %v", path, err)
				}
				if c.Request() == request {
					t.Errorf("%s: the request of another was replaced", path)
				}
				if another := r.ResponseWriter.(*httptest.ResponseRecorder); path != "/writes" && (r.Committed || another.Body.Len() > 0) {
					t.Errorf("%s: another request got %d %q", path, another.Code, another.Body)
				}
				c.SetRequest(request)
				c.SetResponse(echo.NewResponse(client, c.Logger()))
				return c.NoContent(http.StatusServiceUnavailable)
			}
		}, b.guarded)
		b.Afresh("POST", path)
	}
	b.Ran(6)
}

// A handler may leave its request in the context with a derived context, and its response
// behind a layer.
func TestRequestAndResponseOfTheHandlerStayInTheContext(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.POST("/request", b.counted(func(c *echo.Context) error {
		c.SetRequest(c.Request().Clone(t.Context()))
		return created(c)
	}), b.guarded)
	b.POST("/response", b.counted(func(c *echo.Context) error {
		c.SetResponse(echo.NewResponse(c.Response(), c.Logger()))
		return created(c)
	}), b.guarded)
	for _, path := range []string{"/request", "/response"} {
		if first, _ := b.Twice("POST", path); first.Body != createdBody {
			t.Errorf("%s: answered %+v", path, first)
		}
	}
	b.Ran(2)
}
