package repriseecho5

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
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
			if path == "/writes" {
				c.Set(store.ContextKey, t.Context()) // whose run is another
			}
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

// A value that a handler leaves in the context of the request, also in one of the two
// places of its run, makes it no other request.
func TestContextThatServesItsOwnRequest(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	for path, leaves := range map[string]func(*echo.Context){
		"/request": func(c *echo.Context) { c.SetRequest(c.Request().Clone(t.Context())) },
		"/foreign": func(c *echo.Context) { c.Set(store.ContextKey, "ours") },
		"/both": func(c *echo.Context) {
			c.SetRequest(c.Request().Clone(t.Context()))
			c.SetResponse(echo.NewResponse(c.Response(), c.Logger()))
		},
	} {
		b.POST(path, b.counted(func(c *echo.Context) error {
			leaves(c)
			return created(c)
		}), b.guarded)
		if first, _ := b.Twice("POST", path); first.Body != createdBody {
			t.Errorf("%s: answered %+v", path, first)
		}
	}
	b.Ran(3)
}
