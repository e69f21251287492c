package repriseecho5

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestEveryWayToWriteInEchoIsReplayed(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "invoice.txt"), harness.Pattern(100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Filesystem = os.DirFS(dir)
	b.Use(b.guarded)
	for path, c := range map[string]struct {
		handler echo.HandlerFunc
		body    string
	}{
		"/json":   {created, createdBody},
		"/string": {func(c *echo.Context) error { return c.String(http.StatusOK, "7 orders") }, "7 orders"},
		"/write": {func(c *echo.Context) error {
			_, err := io.WriteString(response(t, c).ResponseWriter, "past Echo's response")
			return err
		}, "past Echo's response"},
		"/file": {func(c *echo.Context) error { return c.File("invoice.txt") }, string(harness.Pattern(100_000))},
		"/copy": {func(c *echo.Context) error {
			_, err := io.Copy(response(t, c).ResponseWriter, struct{ io.Reader }{bytes.NewReader(harness.Pattern(70_000))})
			return err
		}, string(harness.Pattern(70_000))},
		"/content": {func(c *echo.Context) error {
			http.ServeContent(c.Response(), c.Request(), "a.bin", time.Unix(0, 0), bytes.NewReader(harness.Pattern(60_000)))
			return nil
		}, string(harness.Pattern(60_000))},
		"/stream": {func(c *echo.Context) error {
			return c.Stream(http.StatusOK, "x/y", bytes.NewReader(harness.Pattern(50_000)))
		}, string(harness.Pattern(50_000))},
		"/blob":   {func(c *echo.Context) error { return c.Blob(http.StatusOK, "x/y", []byte("\x00\xff")) }, "\x00\xff"},
		"/null":   {func(c *echo.Context) error { return c.JSON(http.StatusNoContent, nil) }, ""}, // Echo writes "null", and returns the error
		"/empty":  {func(c *echo.Context) error { return c.NoContent(http.StatusNoContent) }, ""},
		"/silent": {func(*echo.Context) error { return nil }, ""},
		"/move":   {func(c *echo.Context) error { return c.Redirect(http.StatusSeeOther, "/json") }, ""},
	} {
		b.POST(path, c.handler)
		plain := b.Send("POST", path)
		first, _ := b.Twice("POST", path)
		if first.Body != c.body || plain.Body != c.body || first.Status != plain.Status {
			t.Errorf("%s: %d with %d bytes, and %d with %d without a key, want %d bytes", path, first.Status, len(first.Body), plain.Status, len(plain.Body), len(c.body))
		}
		first.SameFields(t, path, plain, "Content-Type", "Location", "Last-Modified")
	}
}

// R17: Echo's own response takes 103 as the final status, so handlers write it behind
// that; it goes out at once, also through a layer that takes it for the final one.
func TestR17InformationalResponses(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.POST("/hints", func(c *echo.Context) error {
		response(t, c).ResponseWriter.WriteHeader(http.StatusEarlyHints)
		return created(c)
	}, b.guarded)
	hinted, a, err := b.Hinted(b.Request("POST", "/hints", "body", "Idempotency-Key", "k"))
	if err != nil || a.Status != http.StatusCreated || a.Body != createdBody || hinted != 1 {
		t.Errorf("%d informational answers, then %+v, %v", hinted, a, err)
	}
	if again := b.Send("POST", "/hints", "Idempotency-Key", "k"); !again.Replayed() || again.Status != http.StatusCreated {
		t.Errorf("replayed %+v", again)
	}
}

// R13: the hooks of a layer run on its side of the middleware: fields from outside belong
// to this response only, and fields from inside to the handler's.
func TestR13HooksRunOnTheirOwnSide(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	var requests, after atomic.Int64
	hooked := func(name string) echo.MiddlewareFunc {
		return func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				n := strconv.FormatInt(requests.Add(1), 10)
				r := response(t, c)
				r.Before(func() { r.Header().Add(name, n) })
				r.After(func() { after.Add(1) })
				return next(c)
			}
		}
	}
	b.POST("/orders", created, hooked("X-Outer"), b.guarded, hooked("X-Inner"))
	first, again := b.Twice("POST", "/orders")
	if got := [][]string{first.Header["X-Outer"], first.Header["X-Inner"], again.Header["X-Outer"], again.Header["X-Inner"]}; !slices.EqualFunc(
		got, [][]string{{"1"}, {"2"}, {"3"}, {"2"}}, slices.Equal) {
		t.Errorf("the fields of the hooks are %q", got)
	}
	if n := after.Load(); n != 3 {
		t.Errorf("the hooks ran %d times after a write, want 3", n)
	}
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
		return func(c *echo.Context) error {
			r := response(t, c)
			err := next(c)
			if c.Response() != r {
				t.Error("a layer outside does not find its response again")
			}
			seen <- state{r.Status, r.Size, r.Committed, err}
			return err
		}
	}, b.guarded)
	b.POST("/json", created)
	b.POST("/empty", func(c *echo.Context) error { return c.NoContent(http.StatusNoContent) })
	b.POST("/error", func(*echo.Context) error { return echo.NewHTTPError(http.StatusTeapot, "no coffee") })
	b.POST("/stream", func(c *echo.Context) error {
		_, err := io.WriteString(c.Response(), "one")
		response(t, c).Flush()
		return err
	})
	for path, want := range map[string]state{
		"/json": {201, int64(len(createdBody)), true, nil}, "/empty": {204, 0, true, nil}, "/stream": {200, 3, true, nil},
		"/error": {418, int64(len(`{"message":"no coffee"}` + "\n")), true, nil},
	} {
		b.Twice("POST", path)
		if first, again := <-seen, <-seen; first != want || again != want {
			t.Errorf("%s: a logger saw %+v and then %+v, want %+v", path, first, again, want)
		}
	}
}
