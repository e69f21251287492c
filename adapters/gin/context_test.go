package reprisegin

import (
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestContextOfAHandler(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	left := make(chan *gin.Context, 1)
	b.Use(func(c *gin.Context) {
		request, w := c.Request, c.Writer
		c.Request = harness.WithOuter(c.Request)
		outer := c.Request
		c.Next()
		if c.Request != outer || c.Writer != w {
			t.Error("a layer outside does not find its request and writer again")
		}
		if c.GetString("set") != "inside" && !c.IsAborted() {
			t.Error("what the handler set in the context is lost")
		}
		c.Request = request
	}, b.guarded)
	b.POST("/orders/:id", func(c *gin.Context) {
		c.Set("set", "inside")
		harness.CheckContext(t, c.Request.Context())
		if body, err := c.GetRawData(); err != nil || string(body) != "body" {
			t.Errorf("body %q, %v", body, err)
		}
		if c.Writer.Pusher() != nil {
			t.Error("HTTP/1.1 has a pusher")
		}
		if err := http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(harness.Patience)); err != nil {
			t.Errorf("the deadlines of the connection: %v", err)
		}
		select {
		case left <- c.Copy():
		default:
		}
		created(c)
	})
	b.Twice("POST", "/orders/7")
	rest := <-left
	if rest.Param("id") != "7" || rest.FullPath() != "/orders/:id" {
		t.Errorf("a copy of the context lost its route: %q, %q", rest.Param("id"), rest.FullPath())
	}
	harness.CheckEnded(t, rest.Request)
}

// Functions that take a context in a handler take gin.Context, too, with or without
// ContextWithFallback.
func TestGinContextIsTheContextOfTheRun(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	copies := make(chan *gin.Context, 4)
	b.Use(func(c *gin.Context) {
		c.Next()
		if _, inside := reprise.AttemptFrom(c); inside || protocol.Keep(c) {
			t.Error("a layer outside finds the run")
		}
	}, b.guarded)
	b.POST("/view", b.counted(func(c *gin.Context) {
		view, ok := reprise.AttemptFrom(c)
		if of, _ := reprise.AttemptFrom(c.Request.Context()); !ok || view != of {
			t.Error("gin.Context does not know the attempt")
		}
		copies <- c.Copy()
		created(c)
	}))
	b.POST("/released", b.counted(func(c *gin.Context) {
		if !protocol.Release(c) {
			t.Error("Release did nothing")
		}
		created(c)
	}))
	b.POST("/kept", b.counted(func(c *gin.Context) {
		if !protocol.Keep(c) {
			t.Error("Keep did nothing")
		}
		c.Status(http.StatusServiceUnavailable)
	}))
	b.POST("/omitted", b.counted(func(c *gin.Context) {
		if !protocol.OmitBody(c) {
			t.Error("OmitBody did nothing")
		}
		created(c)
	}))
	b.Twice("POST", "/view")
	b.Afresh("POST", "/released")
	b.Twice("POST", "/kept")
	for _, want := range []string{createdBody, `{"status":"completed"}`} {
		if a := b.Send("POST", "/omitted", "Idempotency-Key", "omitted"); a.Body != want {
			t.Errorf("answered %+v, want the body %s", a, want)
		}
	}
	b.Ran(5)
	if late := <-copies; protocol.Release(late) {
		t.Error("a copy of the context decides after the answer")
	}
}
