package repriseecho

import (
	"io"
	"net/http"
	"testing"
	"time"

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

func TestContextOfAHandler(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	left := make(chan *http.Request, 1)
	b.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			outer := harness.WithOuter(c.Request())
			c.SetRequest(outer)
			err := next(c)
			if c.Request() != outer {
				t.Error("a layer outside does not find its request again")
			}
			return err
		}
	}, b.guarded)
	b.POST("/orders/:id", func(c echo.Context) error {
		harness.CheckContext(t, c.Request().Context())
		if body, err := io.ReadAll(c.Request().Body); err != nil || string(body) != "body" {
			t.Errorf("body %q, %v", body, err)
		}
		if err := http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(harness.Patience)); err != nil {
			t.Errorf("the deadlines of the connection: %v", err)
		}
		left <- c.Request()
		return created(c)
	})
	b.Twice("POST", "/orders/7")
	harness.CheckEnded(t, <-left)
}

// The server removes the files of a form that was parsed from its own request, so it has
// to learn of those of the handler's.
func TestFilesOfAFormAreRemoved(t *testing.T) {
	files := harness.TempFiles(t)
	b := setup(t, protocol.Config{})
	b.POST("/upload", func(c echo.Context) error {
		err := c.Request().ParseMultipartForm(1) // Echo itself would keep 32 MiB in memory
		form, _ := c.MultipartForm()
		if err != nil || len(form.File["f"]) != 1 {
			t.Errorf("form %v, %v", form, err)
		}
		files.Check(t, 1) // while the handler runs
		return err
	}, b.guarded)
	b.CheckUpload("/upload", 64<<10, files)
}

// Loggers outside see the sent response, and no error that has a response already.
func TestOuterLayersSeeTheSentResponse(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	type state struct {
		status    int
		size      int64
		committed bool
		err       error
	}
	seen := make(chan state, 2)
	b.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			response := c.Response()
			err := next(c)
			if c.Response() != response {
				t.Error("a layer outside does not find its response again")
			}
			seen <- state{response.Status, response.Size, response.Committed, err}
			return err
		}
	}, b.guarded)
	b.POST("/json", created)
	b.POST("/empty", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	b.POST("/error", func(echo.Context) error { return echo.ErrTeapot })
	b.POST("/stream", func(c echo.Context) error {
		_, err := io.WriteString(c.Response(), "one")
		c.Response().Flush()
		return err
	})
	for path, want := range map[string]state{
		"/json": {201, int64(len(createdBody)), true, nil}, "/empty": {204, 0, true, nil}, "/stream": {200, 3, true, nil},
		"/error": {418, int64(len(`{"message":"I'm a teapot"}` + "\n")), true, nil},
	} {
		b.Twice("POST", path)
		if first, again := <-seen, <-seen; first != want || again != want {
			t.Errorf("%s: a logger saw %+v and then %+v, want %+v", path, first, again, want)
		}
	}
}
