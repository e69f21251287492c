package reprisegin

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

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
	strict.Group("/deep").POST("/:id", b.counted(func(c *gin.Context) { c.String(http.StatusOK, c.Param("id")+c.FullPath()) }))
	b.PUT("/one", b.middleware(protocol.Config{Methods: []string{"PUT"}}), b.counted(created))
	b.POST("/open", b.counted(created))
	b.CheckPolicies()
}

// A replay and a refusal end the chain, as the handler's own abort would.
func TestReplayAbortsTheChain(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Required: true})
	aborted := make(chan bool, 3)
	b.Use(func(c *gin.Context) {
		c.Next()
		aborted <- c.IsAborted()
	})
	b.POST("/orders", b.guarded, b.counted(func(*gin.Context) {}), b.counted(created))
	b.Twice("POST", "/orders")
	b.Send("POST", "/orders")
	for _, want := range []bool{false, true, true} {
		if got := <-aborted; got != want {
			t.Errorf("aborted is %v, want %v", got, want)
		}
	}
	b.Ran(2)
}

// Gin writes its 404 and 405 after the middlewares, which is too late to be recorded.
func TestUnmatchedRoutes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*fixture)
		method  string
		status  int
		body    string
	}{
		"404": {func(*fixture) {}, "POST", http.StatusNotFound, "404 page not found"},
		"405": {func(b *fixture) { b.HandleMethodNotAllowed = true }, "PATCH", http.StatusMethodNotAllowed, "405 method not allowed"},
		"custom NoRoute": {func(b *fixture) {
			b.NoRoute(func(c *gin.Context) { c.JSON(http.StatusNotFound, gin.H{"no": c.Request.URL.Path}) })
		}, "POST", http.StatusNotFound, `{"no":"/unmatched"}`},
		"custom NoMethod": {func(b *fixture) {
			b.HandleMethodNotAllowed = true
			b.NoMethod(func(c *gin.Context) { c.String(http.StatusMethodNotAllowed, "not so") })
		}, "PATCH", http.StatusMethodNotAllowed, "not so"},
		"NoRoute without a word": {func(b *fixture) { b.NoRoute(func(*gin.Context) {}) }, "POST", http.StatusNotFound, "404 page not found"},
		"NoRoute with only the status": {func(b *fixture) {
			b.NoRoute(func(c *gin.Context) { c.Status(http.StatusNotFound) })
		}, "POST", http.StatusNotFound, "404 page not found"},
		"NoRoute that ends with the header": {func(b *fixture) {
			b.NoRoute(func(c *gin.Context) { c.AbortWithStatus(http.StatusNotFound) })
		}, "POST", http.StatusNotFound, ""},
		"NoRoute with another status": {func(b *fixture) {
			b.NoRoute(func(c *gin.Context) { c.Status(http.StatusAccepted) })
		}, "POST", http.StatusAccepted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, protocol.Config{})
			b.Use(b.guarded)
			c.prepare(b)
			b.PUT("/unmatched", created)
			plain := b.Send(c.method, "/unmatched")
			first, _ := b.Twice(c.method, "/unmatched")
			if first.Status != c.status || first.Body != c.body {
				t.Errorf("answered %d %q, want %d %q", first.Status, first.Body, c.status, c.body)
			}
			first.SameFields(t, name, plain, "Content-Type", "Allow")
		})
	}
}

// A chain may meet one guard twice, and a handler may send the context through the engine
// again.
func TestGuardThatIsMetTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.Use(b.guarded)
	b.POST("/orders", b.guarded, b.counted(created))
	if first, _ := b.Twice("POST", "/orders"); first.Status != http.StatusCreated {
		t.Errorf("answered %+v", first)
	}
	b.Ran(1)
}

// HandleContext gives the handlers Gin's own writer: their writes cannot be recorded, and
// must not be replayed as empty.
func TestHandleContextIsNotRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.POST("/old", b.guarded, func(c *gin.Context) {
		c.Request.URL.Path = "/new"
		b.HandleContext(c)
	})
	b.POST("/new", b.counted(created))
	_, again := b.Afresh("POST", "/old")
	if again.Status != http.StatusCreated || again.Body != createdBody {
		t.Errorf("answered %+v", again)
	}
	b.Ran(2)
}
