package reprisegin

import (
	"encoding/hex"
	"errors"
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

func TestR44ScopeOfEachRequest(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	guard, err := protocol.New(b.engine, protocol.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tenant := func(c *gin.Context) (string, error) {
		if c.GetString("tenant") == "nobody" {
			return "", errors.New("nobody")
		}
		return c.GetString("tenant"), nil
	}
	b.POST("/orders", func(c *gin.Context) { c.Set("tenant", c.GetHeader("X-Tenant")) }, Middleware(guard, tenant), b.counted(created))

	for _, name := range []string{"one", "two"} {
		if a := b.send("POST", "/orders", "X-Tenant", name, "Idempotency-Key", "k"); a.replayed() || a.status != http.StatusCreated {
			t.Errorf("%s: %+v", name, a)
		}
	}
	for _, name := range []string{"", "nobody"} {
		if a := b.send("POST", "/orders", "X-Tenant", name, "Idempotency-Key", "k"); a.status != http.StatusForbidden {
			t.Errorf("tenant %q: %+v", name, a)
		}
	}
	b.ran(2)
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

func TestMiddlewaresOnBothSides(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	mark := func(name string) gin.HandlerFunc {
		return func(c *gin.Context) {
			c.Header(name, "before")
			c.Next()
		}
	}
	b.POST("/orders", mark("X-Outer"), b.guarded, mark("X-Inner"), created)
	b.POST("/reversed", mark("X-Inner"), b.guarded, mark("X-Outer"), created)

	first, again := b.twice("POST", "/orders")
	for _, a := range []answer{first, again} {
		if len(a.header.Values("X-Outer")) != 1 || len(a.header.Values("X-Inner")) != 1 {
			t.Errorf("fields of both sides: %v", a.header)
		}
	}
	b.twice("POST", "/reversed")
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

// A chain may meet one guard twice, and a handler may send the context through the engine again.
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

// HandleContext gives the handlers Gin's own writer: what they write cannot be recorded, and must not be replayed as empty.
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

func TestR9MethodsThatAreNotKeyed(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Required: true})
	b.Use(b.guarded)
	b.Any("/orders", b.counted(func(c *gin.Context) {
		if _, own := c.Writer.(*writer); own {
			t.Errorf("%s is recorded", c.Request.Method)
		}
		created(c)
	}))
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"} {
		for range 2 {
			a := b.send(method, "/orders", "Idempotency-Key", "k")
			if want := map[bool]string{false: createdBody}[method == "HEAD"]; a.status != http.StatusCreated || a.body != want || a.replayed() {
				t.Errorf("%s: %+v", method, a)
			}
		}
	}
	b.ran(10)
}

// R24: the path counts as it was sent, also where the target has the absolute form.
func TestR24PathIsPartOfTheFingerprint(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.POST("/orders/*id", b.guarded, created)
	for _, targets := range [][2]string{{"/orders/1", "/orders/2"}, {"/orders/a%2Fb", "/orders/a/b"}, {"http://h/orders/1", "http://h/orders/2"}, {"/orders/1?a", "/orders/1?b"}, {"http://h/orders/3?a", "http://h/orders/3?b"}} {
		for i, target := range targets {
			got := b.talk("POST " + target + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 0\r\nIdempotency-Key: " + hex.EncodeToString([]byte(targets[0])) + "\r\n\r\n")
			if want := [2]string{"HTTP/1.1 201 ", "HTTP/1.1 422 "}[i]; !strings.HasPrefix(got, want) {
				t.Errorf("%s: %q, want %s", target, got, want)
			}
		}
	}
}
