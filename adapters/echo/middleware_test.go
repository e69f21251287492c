package repriseecho

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestMiddlewareNeedsGuardAndScope(t *testing.T) {
	t.Parallel()
	harness.Panics(t,
		func() { Middleware(nil, Unscoped) },
		func() { Middleware(new(protocol.Guard), nil) },
	)
}

func TestGroupsAndRoutesHaveTheirOwnPolicy(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	strict := b.Group("/strict", b.middleware(protocol.Config{Required: true}))
	strict.POST("/orders", b.counted(created))
	strict.Group("/deep").POST("/:id", b.counted(func(c echo.Context) error { return c.String(http.StatusOK, c.Param("id")+c.Path()) }))
	b.PUT("/one", b.counted(created), b.middleware(protocol.Config{Methods: []string{"PUT"}}))
	b.POST("/open", b.counted(created))
	b.CheckPolicies()
}

// The middleware works wherever Echo takes one, and on each of these levels an unmatched
// route is an error that it sees.
func TestUnmatchedRoutes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*fixture)
		method  string
		path    string
		status  int
		body    string
	}{
		"404":              {func(b *fixture) { b.Use(b.guarded) }, "POST", "/nowhere", 404, `{"message":"Not Found"}` + "\n"},
		"405":              {func(b *fixture) { b.Use(b.guarded) }, "PATCH", "/orders", 405, `{"message":"Method Not Allowed"}` + "\n"},
		"before the route": {func(b *fixture) { b.Pre(b.guarded) }, "POST", "/nowhere", 404, `{"message":"Not Found"}` + "\n"},
		"in a group":       {func(b *fixture) { b.Group("/group", b.guarded) }, "POST", "/group/x", 404, `{"message":"Not Found"}` + "\n"},
		"RouteNotFound": {func(b *fixture) {
			b.Use(b.guarded)
			b.RouteNotFound("/*", func(c echo.Context) error { return c.String(http.StatusNotFound, "no "+c.Request().URL.Path) })
		}, "POST", "/nowhere", 404, "no /nowhere"},
		"custom error handler": {func(b *fixture) {
			b.Use(b.guarded)
			b.HTTPErrorHandler = func(err error, c echo.Context) { _ = c.String(http.StatusGone, err.Error()) }
		}, "POST", "/nowhere", 410, "code=404, message=Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, protocol.Config{})
			c.prepare(b)
			b.PUT("/orders", created)
			plain := b.Send(c.method, c.path)
			first, _ := b.Twice(c.method, c.path)
			if first.Status != c.status || first.Body != c.body || plain.Status != c.status {
				t.Errorf("answered %d %q, want %d %q", first.Status, first.Body, c.status, c.body)
			}
			first.SameFields(t, name, plain, "Content-Type", "Allow")
		})
	}
}

func TestGuardThatIsMetTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.Use(b.guarded)
	b.POST("/orders", b.counted(created), b.guarded)
	if first, _ := b.Twice("POST", "/orders"); first.Status != http.StatusCreated {
		t.Errorf("answered %+v", first)
	}
	b.Ran(1)
}

// Layers and handlers of net/http have a separate response and request.
func TestHandlersOfNetHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	layer := echo.WrapMiddleware(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Layer", "1")
			next.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
		})
	})
	fails := func(echo.Context) error { return echo.NewHTTPError(http.StatusConflict, "taken") }
	b.POST("/handler", echo.WrapHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("wrapped"))
	})), b.guarded)
	b.POST("/inside", created, b.guarded, layer)
	b.POST("/outside", created, layer, b.guarded)
	b.POST("/inside/fails", fails, b.guarded, layer)
	b.POST("/outside/fails", fails, layer, b.guarded)
	for path, status := range map[string]int{"/handler": 202, "/inside": 201, "/outside": 201, "/inside/fails": 409, "/outside/fails": 409} {
		if first, _ := b.Twice("POST", path); first.Status != status || first.Body == "" {
			t.Errorf("%s: %+v", path, first)
		}
	}
}
