package reprisegin

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestEveryWayToWriteInGinIsReplayed(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	file := filepath.Join(t.TempDir(), "invoice.txt")
	if err := os.WriteFile(file, harness.Pattern(100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"/json": createdBody, "/string": "7 orders", "/write": "ab", "/file": string(harness.Pattern(100_000)), "/copy": string(harness.Pattern(70_000)),
		"/content": string(harness.Pattern(60_000)), "/reader": string(harness.Pattern(50_000)), "/data": "\x00\xff",
		"/events": "event:tick\ndata:0\n\nevent:tick\ndata:1\n\n", "/empty": "", "/redirect": "",
	}
	b.Use(b.guarded)
	b.POST("/json", created)
	b.POST("/string", func(c *gin.Context) { c.String(http.StatusOK, "%d orders", 7) })
	b.POST("/write", func(c *gin.Context) {
		bytes := []byte("b")
		_, _ = c.Writer.WriteString("a")
		_, _ = c.Writer.Write(bytes)
	})
	b.POST("/file", func(c *gin.Context) { c.File(file) })
	b.POST("/copy", func(c *gin.Context) {
		_, _ = io.Copy(c.Writer, struct{ io.Reader }{bytes.NewReader(harness.Pattern(70_000))})
	})
	b.POST("/content", func(c *gin.Context) {
		http.ServeContent(c.Writer, c.Request, "a.bin", time.Unix(0, 0), bytes.NewReader(harness.Pattern(60_000)))
	})
	b.POST("/reader", func(c *gin.Context) {
		c.DataFromReader(http.StatusOK, 50_000, "x/y", bytes.NewReader(harness.Pattern(50_000)), map[string]string{"X-Extra": "1"})
	})
	b.POST("/data", func(c *gin.Context) { c.Data(http.StatusOK, "x/y", []byte("\x00\xff")) })
	b.POST("/events", func(c *gin.Context) {
		for i := range 2 {
			c.SSEvent("tick", i)
			c.Writer.Flush()
		}
	})
	b.POST("/empty", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	b.POST("/redirect", func(c *gin.Context) { c.Redirect(http.StatusSeeOther, "/json") })
	for path, body := range want {
		plain := b.Send("POST", path)
		first, _ := b.Twice("POST", path)
		if first.Body != body || plain.Body != body || first.Status != plain.Status {
			t.Errorf("%s: %d with %d bytes, and %d with %d without a key, want %d bytes", path, first.Status, len(first.Body), plain.Status, len(plain.Body), len(body))
		}
		first.SameFields(t, path, plain, "Content-Type", "Location", "Last-Modified", "X-Extra")
	}
}

// Loggers outside see the sent response, and handlers see their own.
func TestWriterReportsTheSentResponse(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	type state struct {
		status, size int
		written      bool
	}
	seen := make(chan state, 3)
	see := func(c *gin.Context) state { return state{c.Writer.Status(), c.Writer.Size(), c.Writer.Written()} }
	outer := make(chan int, 3)
	b.Use(func(c *gin.Context) {
		c.Next()
		seen <- see(c)
		outer <- len(c.Errors)
	}, b.guarded)
	b.POST("/json", created)
	b.POST("/empty", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	b.POST("/error", func(c *gin.Context) { _ = c.AbortWithError(http.StatusConflict, errors.New("taken")) })
	b.POST("/steps", func(c *gin.Context) {
		steps := []state{see(c)}
		c.Status(http.StatusAccepted)
		steps = append(steps, see(c))
		c.Writer.WriteHeaderNow()
		c.Status(http.StatusTeapot) // too late
		steps = append(steps, see(c))
		_, _ = c.Writer.WriteString("four")
		steps = append(steps, see(c))
		for i, want := range []state{{200, -1, false}, {202, -1, false}, {202, 0, true}, {202, 4, true}} {
			if steps[i] != want {
				t.Errorf("step %d: %+v, want %+v", i, steps[i], want)
			}
		}
	})
	for path, want := range map[string]state{
		"/json": {201, len(createdBody), true}, "/empty": {204, -1, false}, "/error": {409, 0, true}, "/steps": {202, 4, true},
	} {
		b.Send("POST", path)
		b.Twice("POST", path)
		if bare, first, again := <-seen, <-seen, <-seen; bare != want || first != want || again.status != want.status {
			t.Errorf("%s: a logger saw %+v without a key, %+v with one, and %+v of the replay, want %+v", path, bare, first, again, want)
		}
		if bare, first, again := <-outer, <-outer, <-outer; bare != first || (first == 1) != (path == "/error") || again != 0 {
			t.Errorf("%s: a logger saw %d errors without a key, %d with one, and %d of the replay", path, bare, first, again)
		}
	}
}
