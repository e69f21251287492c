package reprisegin

import (
	"context"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestContextOfAHandler(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	type name struct{}
	left := make(chan *gin.Context, 1)
	b.Use(func(c *gin.Context) {
		request, w := c.Request, c.Writer
		c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), name{}, "outer"))
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
		ctx := c.Request.Context()
		if ctx.Value(name{}) != "outer" || ctx.Err() != nil {
			t.Errorf("value %v, error %v", ctx.Value(name{}), ctx.Err())
		}
		if view, ok := reprise.AttemptFrom(ctx); !ok || view.Number() != 1 {
			t.Error("the handler does not know its attempt")
		}
		if body, err := c.GetRawData(); err != nil || string(body) != "body" {
			t.Errorf("body %q, %v", body, err)
		}
		if c.Writer.Pusher() != nil {
			t.Error("HTTP/1.1 has a pusher")
		}
		if err := http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(patience)); err != nil {
			t.Errorf("the deadlines of the connection: %v", err)
		}
		select {
		case left <- c.Copy():
		default:
		}
		created(c)
	})
	b.twice("POST", "/orders/7")
	rest := <-left
	if rest.Param("id") != "7" || rest.FullPath() != "/orders/:id" {
		t.Errorf("a copy of the context lost its route: %q, %q", rest.Param("id"), rest.FullPath())
	}
	select {
	case <-rest.Request.Context().Done():
	case <-time.After(patience):
		t.Error("the context of a handler outlives its answer")
	}
	if _, err := rest.Request.Body.Read(make([]byte, 1)); err == nil {
		t.Error("the body can be read after the answer")
	}
}

// The server removes the files of a form that was parsed from its own request, so it has
// to learn of those of the handler's.
func TestFilesOfAFormAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	b := setup(t, protocol.Config{})
	b.MaxMultipartMemory = 1
	b.POST("/upload", b.guarded, func(c *gin.Context) {
		form, err := c.MultipartForm()
		if err != nil || len(form.File["f"]) != 1 {
			t.Errorf("form %v, %v", form, err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Fatalf("%d files while the handler runs, want 1: the test shows nothing", len(entries))
		}
	})
	var body strings.Builder
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("f", "f.bin")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write(pattern(100_000))
	_ = form.Close()
	if a, err := b.try(b.request("POST", "/upload", body.String(), "Content-Type", form.FormDataContentType(), "Idempotency-Key", "k")); err != nil || a.status != http.StatusOK {
		t.Fatalf("%+v, %v", a, err)
	}
	eventually(t, func() bool {
		entries, err := os.ReadDir(dir)
		return err == nil && len(entries) == 0
	})
}

// What takes a context in a handler takes gin.Context, too, with or without
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
	b.twice("POST", "/view")
	b.afresh("POST", "/released")
	b.twice("POST", "/kept")
	for _, want := range []string{createdBody, `{"status":"completed"}`} {
		if a := b.send("POST", "/omitted", "Idempotency-Key", "omitted"); a.body != want {
			t.Errorf("answered %+v, want the body %s", a, want)
		}
	}
	b.ran(5)
	if late := <-copies; protocol.Release(late) {
		t.Error("a copy of the context decides after the answer")
	}
}
