package reprisegin

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestMiddlewareNeedsGuardAndScope(t *testing.T) {
	t.Parallel()
	harness.Panics(t,
		func() { Middleware(nil, Unscoped) },
		func() { Middleware(new(protocol.Guard), nil) },
	)
}

// Gin writes its 405 after the middlewares, which is too late to be recorded.
func TestMethodThatIsNotAllowed(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.HandleMethodNotAllowed = true
	b.Use(b.guarded)
	b.PUT("/orders", created)
	plain := b.Send("PATCH", "/orders")
	first, _ := b.Twice("PATCH", "/orders")
	if first.Status != http.StatusMethodNotAllowed || first.Body != "405 method not allowed" || !maps.EqualFunc(first.Kept(), plain.Kept(), slices.Equal) {
		t.Errorf("answered %+v, without a key %+v", first, plain)
	}
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
	b.Twice("POST", "/view")
	b.Afresh("POST", "/released")
	b.Ran(3)
	if late := <-copies; protocol.Release(late) {
		t.Error("a copy of the context decides after the answer")
	}
}

// The server removes the files of a form that was parsed from its own request, so it has
// to learn of those of the handler's.
func TestFilesOfAFormAreRemoved(t *testing.T) {
	files := harness.TempFiles(t)
	b := setup(t, protocol.Config{})
	b.MaxMultipartMemory = 1
	b.POST("/upload", b.guarded, func(c *gin.Context) {
		form, err := c.MultipartForm()
		if err != nil || len(form.File["f"]) != 1 {
			t.Errorf("form %v, %v", form, err)
		}
		files.Check(t, 1) // while the handler runs
	})
	b.CheckUpload("/upload", 100_000, files)
}

// The handler, too, may bind a body that a layer outside bound.
func TestR50BodyThatIsBoundTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	bind := func(c *gin.Context) { _ = c.ShouldBindBodyWith(new(any), binding.JSON) }
	b.POST("/", bind, b.guarded, func(c *gin.Context) {
		var got struct{ Amount int }
		if err := c.ShouldBindBodyWith(&got, binding.JSON); err != nil {
			t.Error(err)
		}
		c.String(http.StatusOK, "paid %d", got.Amount)
	})
	if got, err := b.Try(b.Request("POST", "/", `{"amount":1}`, "Idempotency-Key", "k")); err != nil || got.Body != "paid 1" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Where a chain only reports errors, a layer makes the response of them. Behind the
// middleware it is recorded; outside of it, the first response is right, with the fields
// of the chain, but not kept.
func TestErrorsWithoutAResponse(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	reporting := func(c *gin.Context) {
		c.Next()
		if len(c.Errors) > 0 {
			c.JSON(http.StatusUnprocessableEntity, gin.H{"error": c.Errors.Last().Error()})
		}
	}
	fails := b.counted(func(c *gin.Context) {
		c.Header("X-Failed", "1")
		_ = c.Error(errors.New("no stock"))
	})
	b.POST("/inside", b.guarded, reporting, fails)
	b.POST("/outside", reporting, b.guarded, fails)
	const body = `{"error":"no stock"}`
	if first, _ := b.Twice("POST", "/inside"); first.Status != http.StatusUnprocessableEntity || first.Body != body {
		t.Errorf("inside: %+v", first)
	}
	first, again := b.Afresh("POST", "/outside")
	for _, a := range []harness.Response{first, again} {
		if a.Status != http.StatusUnprocessableEntity || a.Body != body || a.Header.Get("X-Failed") != "1" {
			t.Errorf("outside: %+v", a)
		}
	}
	b.Ran(3)
}
