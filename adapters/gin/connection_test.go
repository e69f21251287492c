package reprisegin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/protocol"
)

// Gin lets a handler take the connection after it wrote, or even sent, the header, which
// its client then gets first.
func TestHijackAfterTheHeaderIsNotKept(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	take := func(c *gin.Context) {
		if c.Query("flushed") != "" {
			c.Writer.Flush()
		} else {
			c.Writer.WriteHeaderNow()
		}
		conn, _, err := c.Writer.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "raw")
	}
	b.POST("/plain", take)
	b.POST("/guarded", b.guarded, b.counted(take))
	talk := func(path string) string { // the handler ends after its connection: a key for each path
		return b.Talk("POST " + path + " HTTP/1.1\r\nHost: h\r\nIdempotency-Key: \"" + path + "\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	}
	date := regexp.MustCompile("Date: .*\r\n")
	for n, query := range []string{"", "?flushed=1"} {
		want := date.ReplaceAllString(talk("/plain"+query), "")
		if got := date.ReplaceAllString(talk("/guarded"+query), ""); got != want || !strings.HasSuffix(want, "raw") {
			t.Errorf("%q: got %q, without the middleware %q", query, got, want)
		}
		b.Eventually(func() bool {
			return strings.HasSuffix(talk("/guarded"+query), "raw")
		})
		b.Ran(int64(2 * (n + 1)))
	}
}

func TestHijackAfterTheBodyFails(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.POST("/late", b.guarded, func(c *gin.Context) {
		c.String(http.StatusOK, "body")
		if _, _, err := c.Writer.Hijack(); !errors.Is(err, errWritten) {
			t.Errorf("error %v", err)
		}
	})
	if first, _ := b.Twice("POST", "/late"); first.Body != "body" {
		t.Errorf("%+v", first)
	}
}

// R17: a header with 103 goes out past layers that can be passed, and the first byte then
// follows a 200, as without the middleware. Gin leaves an informational status that
// another one replaces.
func TestR17InformationalResponses(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	guard := b.Guard(protocol.Config{})
	outer := Middleware(guard, func(*gin.Context) (string, error) { return "outer", nil })
	hints := func(c *gin.Context) {
		c.Writer.WriteHeader(http.StatusEarlyHints)
		c.Writer.WriteHeaderNow()
		created(c)
	}
	b.POST("/bare", hints)
	b.POST("/plain", b.guarded, hints)
	b.POST("/nested", outer, Middleware(guard, Unscoped), hints)
	b.POST("/hidden", func(c *gin.Context) {
		c.Writer = struct{ gin.ResponseWriter }{c.Writer}
	}, b.guarded, hints)
	b.POST("/replaced", b.guarded, func(c *gin.Context) {
		c.Writer.WriteHeader(http.StatusEarlyHints)
		created(c)
	})
	b.POST("/alone", b.guarded, func(c *gin.Context) { c.Status(http.StatusEarlyHints) })
	const json = "application/json; charset=utf-8"
	for path, want := range map[string]struct {
		hints, status int
		typ           string
	}{
		"/bare": {1, 200, json}, "/plain": {1, 200, json}, "/nested": {1, 200, json}, "/hidden": {0, 200, json},
		"/replaced": {0, 201, json}, "/alone": {1, 200, ""},
	} {
		a, err := b.Try(b.Request("POST", path, "", "Idempotency-Key", path))
		if err != nil || a.Status != want.status || a.Header.Get("Content-Type") != want.typ || a.Hints != want.hints {
			t.Errorf("%s: got %+v, %v, want %+v", path, a, err, want)
		}
		if path == "/bare" {
			continue
		}
		if again, err := b.Try(b.Request("POST", path, "", "Idempotency-Key", path)); err != nil || !again.Replayed() || again.Status != want.status {
			t.Errorf("%s: replayed %+v, %v", path, again, err)
		}
	}
}

// R23: neither the context of a handler nor CloseNotify, on which c.Stream relies,
// signals a client disconnect. A stream that ended with its client would be replayed as
// if it were complete.
func TestR23StreamOutlivesItsClient(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	gone := make(chan struct{})
	leaves := sync.OnceFunc(func() { close(gone) })
	b.POST("/stream", func(c *gin.Context) { context.AfterFunc(c.Request.Context(), leaves) }, b.guarded, b.counted(func(c *gin.Context) {
		rest := []string{"one ", "two ", "three"}
		ended := c.Stream(func(w io.Writer) bool {
			_, _ = io.WriteString(w, rest[0])
			rest = rest[1:]
			if len(rest) == 2 {
				c.Writer.Flush()
				<-gone
			}
			return len(rest) > 0
		})
		if ended || c.Request.Context().Err() != nil {
			t.Errorf("the stream ended with its client: %v, %v", ended, c.Request.Context().Err())
		}
	}))
	ctx, leave := context.WithCancel(t.Context())
	res, err := harness.Client.Do(b.Request("POST", "/stream", "", "Idempotency-Key", "k").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(res.Body).ReadString(' '); err != nil {
		t.Fatal(err)
	}
	leave()
	_ = res.Body.Close()
	b.Eventually(func() bool {
		again, err := b.Try(b.Request("POST", "/stream", "", "Idempotency-Key", "k"))
		if err != nil || !again.Replayed() && again.Status != http.StatusConflict {
			t.Fatalf("the retry got %+v, %v", again, err)
		}
		return again.Replayed() && again.Body == "one two three"
	})
	b.Ran(1)
}
