package reprisegin

import (
	"errors"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reprise-go/reprise/core/protocol"
)

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
		c.Status(-1) // leaves it, as c.Render does for some
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
