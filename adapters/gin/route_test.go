package reprisegin

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

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
	strict.Group("/deep").POST("/:id", b.counted(func(c *gin.Context) { c.String(http.StatusOK, c.Param("id")+c.FullPath()) }))
	b.PUT("/one", b.middleware(protocol.Config{Methods: []string{"PUT"}}), b.counted(created))
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
	b.twice("POST", "/orders")
	b.send("POST", "/orders")
	for _, want := range []bool{false, true, true} {
		if got := <-aborted; got != want {
			t.Errorf("aborted is %v, want %v", got, want)
		}
	}
	b.ran(2)
}

// Gin writes its 404 and 405 after the middlewares, which is too late to be recorded.
func TestUnmatchedRoutes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*bench)
		method  string
		status  int
		body    string
	}{
		"404": {func(*bench) {}, "POST", http.StatusNotFound, "404 page not found"},
		"405": {func(b *bench) { b.HandleMethodNotAllowed = true }, "PATCH", http.StatusMethodNotAllowed, "405 method not allowed"},
		"custom NoRoute": {func(b *bench) {
			b.NoRoute(func(c *gin.Context) { c.JSON(http.StatusNotFound, gin.H{"no": c.Request.URL.Path}) })
		}, "POST", http.StatusNotFound, `{"no":"/unmatched"}`},
		"custom NoMethod": {func(b *bench) {
			b.HandleMethodNotAllowed = true
			b.NoMethod(func(c *gin.Context) { c.String(http.StatusMethodNotAllowed, "not so") })
		}, "PATCH", http.StatusMethodNotAllowed, "not so"},
		"NoRoute without a word": {func(b *bench) { b.NoRoute(func(*gin.Context) {}) }, "POST", http.StatusNotFound, "404 page not found"},
		"NoRoute with only the status": {func(b *bench) {
			b.NoRoute(func(c *gin.Context) { c.Status(http.StatusNotFound) })
		}, "POST", http.StatusNotFound, "404 page not found"},
		"NoRoute that ends with the header": {func(b *bench) {
			b.NoRoute(func(c *gin.Context) { c.AbortWithStatus(http.StatusNotFound) })
		}, "POST", http.StatusNotFound, ""},
		"NoRoute with another status": {func(b *bench) {
			b.NoRoute(func(c *gin.Context) { c.Status(http.StatusAccepted) })
		}, "POST", http.StatusAccepted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, protocol.Config{})
			b.Use(b.guarded)
			c.prepare(b)
			b.PUT("/unmatched", created)
			plain := b.send(c.method, "/unmatched")
			first, _ := b.twice(c.method, "/unmatched")
			if first.status != c.status || first.body != c.body {
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

// A chain may meet one guard twice, and a handler may send the context through the engine
// again.
func TestGuardThatIsMetTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.Use(b.guarded)
	b.POST("/orders", b.guarded, b.counted(created))
	if first, _ := b.twice("POST", "/orders"); first.status != http.StatusCreated {
		t.Errorf("answered %+v", first)
	}
	b.ran(1)
}

// HandleContext gives the handlers Gin's own writer: what they write cannot be recorded,
// and must not be replayed as empty.
func TestHandleContextIsNotRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.POST("/old", b.guarded, func(c *gin.Context) {
		c.Request.URL.Path = "/new"
		b.HandleContext(c)
	})
	b.POST("/new", b.counted(created))
	_, again := b.afresh("POST", "/old")
	if again.status != http.StatusCreated || again.body != createdBody {
		t.Errorf("answered %+v", again)
	}
	b.ran(2)
}
