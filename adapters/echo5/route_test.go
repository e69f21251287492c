package repriseecho5

import (
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/reprise-go/reprise/core/protocol"
)

func TestMiddlewareNeedsGuardAndScope(t *testing.T) {
	t.Parallel()
	for _, call := range []func(){
		func() { Middleware(nil, Unscoped) },
		func() { Middleware(new(protocol.Guard), nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		}()
	}
}

func TestGroupsAndRoutesHaveTheirOwnPolicy(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	strict := b.Group("/strict", b.middleware(protocol.Config{Required: true}))
	strict.POST("/orders", b.counted(created))
	strict.Group("/deep").POST("/:id", b.counted(func(c *echo.Context) error { return c.String(http.StatusOK, c.Param("id")+c.Path()) }))
	b.PUT("/one", b.counted(created), b.middleware(protocol.Config{Methods: []string{"PUT"}}))
	b.POST("/open", b.counted(created))

	if a := b.send("POST", "/strict/orders"); a.status != http.StatusBadRequest || !strings.Contains(a.body, "key-missing") {
		t.Errorf("without a key: %+v", a)
	}
	b.ran(0)
	b.twice("POST", "/strict/orders")
	if first, _ := b.twice("POST", "/strict/deep/7"); first.body != "7/strict/deep/:id" {
		t.Errorf("the route of a group below: %+v", first)
	}
	b.twice("PUT", "/one")
	b.afresh("POST", "/open")
	b.ran(5)
}

// The middleware works wherever Echo takes one, and on each of these levels an unmatched
// route is an error that it sees.
func TestUnmatchedRoutes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*bench)
		method  string
		path    string
		status  int
		body    string
	}{
		"404":              {func(b *bench) { b.Use(b.guarded) }, "POST", "/nowhere", 404, `{"message":"Not Found"}` + "\n"},
		"405":              {func(b *bench) { b.Use(b.guarded) }, "PATCH", "/orders", 405, `{"message":"Method Not Allowed"}` + "\n"},
		"before the route": {func(b *bench) { b.Pre(b.guarded) }, "POST", "/nowhere", 404, `{"message":"Not Found"}` + "\n"},
		"in a group": {func(b *bench) { // some releases of v5 run the layers of a group only for its own routes
			b.Group("/group", b.guarded).RouteNotFound("/*", func(*echo.Context) error { return echo.ErrNotFound })
		}, "POST", "/group/x", 404, `{"message":"Not Found"}` + "\n"},
		"RouteNotFound": {func(b *bench) {
			b.Use(b.guarded)
			b.RouteNotFound("/*", func(c *echo.Context) error { return c.String(http.StatusNotFound, "no "+c.Request().URL.Path) })
		}, "POST", "/nowhere", 404, "no /nowhere"},
		"custom error handler": {func(b *bench) {
			b.Use(b.guarded)
			b.HTTPErrorHandler = func(c *echo.Context, err error) { _ = c.String(http.StatusGone, err.Error()) }
		}, "POST", "/nowhere", 410, "Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, protocol.Config{})
			c.prepare(b)
			b.PUT("/orders", created)
			plain := b.send(c.method, c.path)
			first, _ := b.twice(c.method, c.path)
			if first.status != c.status || first.body != c.body || plain.status != c.status {
				t.Errorf("answered %d %q, want %d %q", first.status, first.body, c.status, c.body)
			}
			for _, field := range []string{"Content-Type", "Allow"} {
				if got, want := first.header.Get(field), plain.header.Get(field); got != want {
					t.Errorf("%s is %q, and %q without a key", field, got, want)
				}
			}
		})
	}
}

func TestGuardThatIsMetTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.Use(b.guarded)
	b.POST("/orders", b.counted(created), b.guarded)
	if first, _ := b.twice("POST", "/orders"); first.status != http.StatusCreated {
		t.Errorf("answered %+v", first)
	}
	b.ran(1)
}

// Layers and handlers of net/http have a response and a request of their own.
func TestHandlersOfNetHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	layer := echo.WrapMiddleware(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Layer", "1")
			next.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
		})
	})
	fails := func(*echo.Context) error { return echo.NewHTTPError(http.StatusConflict, "taken") }
	b.POST("/handler", echo.WrapHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("wrapped"))
	})), b.guarded)
	b.POST("/inside", created, b.guarded, layer)
	b.POST("/outside", created, layer, b.guarded)
	b.POST("/inside/fails", fails, b.guarded, layer)
	b.POST("/outside/fails", fails, layer, b.guarded)
	for path, status := range map[string]int{"/handler": 202, "/inside": 201, "/outside": 201, "/inside/fails": 409, "/outside/fails": 409} {
		if first, _ := b.twice("POST", path); first.status != status || first.body == "" {
			t.Errorf("%s: %+v", path, first)
		}
	}
}
