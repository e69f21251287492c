package reprisegin

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestR12ReplayDoesNotDependOnHowTheBodyWasWritten(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	file := filepath.Join(t.TempDir(), "invoice.txt")
	if err := os.WriteFile(file, pattern(100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"/json": createdBody, "/string": "7 orders", "/write": "ab", "/file": string(pattern(100_000)), "/copy": string(pattern(70_000)),
		"/content": string(pattern(60_000)), "/reader": string(pattern(50_000)), "/data": "\x00\xff", "/empty": "", "/redirect": "",
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
		_, _ = io.Copy(c.Writer, struct{ io.Reader }{bytes.NewReader(pattern(70_000))})
	})
	b.POST("/content", func(c *gin.Context) {
		http.ServeContent(c.Writer, c.Request, "a.bin", time.Unix(0, 0), bytes.NewReader(pattern(60_000)))
	})
	b.POST("/reader", func(c *gin.Context) {
		c.DataFromReader(http.StatusOK, 50_000, "x/y", bytes.NewReader(pattern(50_000)), map[string]string{"X-Extra": "1"})
	})
	b.POST("/data", func(c *gin.Context) { c.Data(http.StatusOK, "x/y", []byte("\x00\xff")) })
	b.POST("/empty", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	b.POST("/redirect", func(c *gin.Context) { c.Redirect(http.StatusSeeOther, "/json") })
	for path, body := range want {
		plain := b.send("POST", path)
		first, _ := b.twice("POST", path)
		if first.body != body || plain.body != body || first.status != plain.status {
			t.Errorf("%s: %d with %d bytes, and %d with %d without a key, want %d bytes", path, first.status, len(first.body), plain.status, len(plain.body), len(body))
		}
		for _, field := range []string{"Content-Type", "Location", "Last-Modified", "X-Extra"} {
			if got, want := first.header.Get(field), plain.header.Get(field); got != want {
				t.Errorf("%s: %s is %q, and %q without a key", path, field, got, want)
			}
		}
	}
}

// What a layer set before the chain reached the middleware holds unless the handler says otherwise, as it does in Gin.
func TestStatusOfAnOuterLayer(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.Use(func(c *gin.Context) { c.Status(http.StatusAccepted) }, b.guarded)
	b.POST("/kept", func(c *gin.Context) { _, _ = c.Writer.WriteString("body") })
	b.POST("/empty", func(*gin.Context) {})
	b.POST("/changed", func(c *gin.Context) {
		c.Status(http.StatusTeapot)
		c.JSON(http.StatusCreated, gin.H{"id": 7})
	})
	for path, status := range map[string]int{"/kept": 202, "/empty": 202, "/changed": 201} {
		if first, _ := b.twice("POST", path); first.status != status {
			t.Errorf("%s: %d, want %d", path, first.status, status)
		}
	}
}

// R13: a layer outside sets fields for this answer, before the chain and after it.
func TestR13FieldsOfOuterLayersAreNotReplayed(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	n := 0
	b.Use(func(c *gin.Context) {
		n++
		c.Header("X-Outer", string(rune('a'+n)))
	}, b.guarded)
	b.POST("/orders", created)
	first, again := b.twice("POST", "/orders")
	if got := append(first.header.Values("X-Outer"), again.header.Values("X-Outer")...); strings.Join(got, "") != "bc" {
		t.Errorf("X-Outer is %q, want b and c", got)
	}
}

// R34: the bytes of a stream leave as they are flushed, and its replay has them all.
func TestR34StreamsAreLive(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	received := make(chan struct{})
	b.Use(b.guarded)
	b.POST("/stream", func(c *gin.Context) {
		parts := []string{"one ", "two ", "three"}
		c.Stream(func(w io.Writer) bool {
			_, _ = io.WriteString(w, parts[0])
			parts = parts[1:]
			if len(parts) == 2 {
				c.Writer.Flush()
				<-received
			}
			return len(parts) > 0
		})
	})
	b.POST("/events", func(c *gin.Context) {
		for i := range 3 {
			c.SSEvent("tick", i)
			c.Writer.Flush()
		}
	})
	res, err := client.Do(b.request("POST", "/stream", "body", "Idempotency-Key", "live"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	part := make([]byte, 4)
	if _, err := io.ReadFull(res.Body, part); err != nil || string(part) != "one " {
		t.Fatalf("the first part is %q, %v", part, err)
	}
	close(received)
	if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "two three" {
		t.Errorf("the rest is %q, %v", rest, err)
	}
	if again := b.send("POST", "/stream", "Idempotency-Key", "live"); !again.replayed() || again.body != "one two three" {
		t.Errorf("replayed %+v", again)
	}
	first, _ := b.twice("POST", "/events")
	if first.body != "event:tick\ndata:0\n\nevent:tick\ndata:1\n\nevent:tick\ndata:2\n\n" || !strings.HasPrefix(first.header.Get("Content-Type"), "text/event-stream") {
		t.Errorf("events: %+v", first)
	}
}

// R41: where the effects commit with the answer, not even a stream leaves before they did.
func TestR41NothingLeavesBeforeTheEffectsAreCommitted(t *testing.T) {
	t.Parallel()
	b := setupOver(t, rollingBack{memstore.New()}, protocol.Config{})
	b.POST("/orders", b.guarded, b.counted(func(c *gin.Context) {
		c.Header("X-Order", "7")
		c.String(http.StatusCreated, "created")
		c.Writer.Flush()
		_, _ = c.Writer.WriteString(" and paid")
		if c.Writer.Size() != len("created and paid") {
			t.Errorf("the handler sees %d bytes", c.Writer.Size())
		}
	}))
	_, again := b.afresh("POST", "/orders")
	if again.status != http.StatusServiceUnavailable || !strings.Contains(again.body, "not-applied") || again.header.Get("X-Order") != "" {
		t.Errorf("answered %+v", again)
	}
	b.ran(2)
}

func TestCompressionOnBothSides(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.POST("/inside", b.guarded, gzipped, created)
	b.POST("/outside", gzipped, b.guarded, created)
	b.POST("/streamed", gzipped, b.guarded, func(c *gin.Context) {
		c.Stream(func(w io.Writer) bool {
			_, _ = io.WriteString(w, createdBody)
			return false
		})
	})
	b.twice("POST", "/inside")
	b.twice("POST", "/outside")
	for _, path := range []string{"/inside", "/outside", "/streamed"} {
		for i := range 2 {
			a := b.send("POST", path, "Idempotency-Key", path)
			if a.header.Get("Content-Encoding") != "gzip" || unzip(t, a.body) != createdBody || a.replayed() != (i == 1) {
				t.Errorf("%s: %+v", path, a)
			}
		}
	}
}

// Loggers outside see what was sent, and handlers see what they wrote.
func TestWriterKnowsWhatWasSent(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	type state struct {
		status, size int
		written      bool
	}
	seen := make(chan state, 2)
	see := func(c *gin.Context) state { return state{c.Writer.Status(), c.Writer.Size(), c.Writer.Written()} }
	outer := make(chan int, 2)
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
		"/json": {201, len(createdBody), true}, "/empty": {204, 0, true}, "/error": {409, 0, true}, "/steps": {202, 4, true},
	} {
		b.twice("POST", path)
		first, again := <-seen, <-seen
		if first != want || again != want {
			t.Errorf("%s: a logger saw %+v and then %+v, want %+v", path, first, again, want)
		}
		if first, again := <-outer, <-outer; (first == 1) != (path == "/error") || again != 0 {
			t.Errorf("%s: a logger saw %d and then %d errors", path, first, again)
		}
	}
}
