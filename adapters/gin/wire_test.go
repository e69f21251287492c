package reprisegin

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/protocol"
)

// deciding is a layer that decides about the header with the first byte, as compressors
// do. It inherits WriteHeaderNow from the writer behind it.
func deciding(c *gin.Context) {
	w := &decidingWriter{ResponseWriter: c.Writer}
	c.Writer = w
	c.Header("Content-Encoding", "x-test")
	c.Next()
	if !w.wrote {
		w.Header().Del("Content-Encoding")
	}
	c.Writer = w.ResponseWriter
}

type decidingWriter struct {
	gin.ResponseWriter

	wrote bool
}

func (w *decidingWriter) Write(p []byte) (int, error) { return w.WriteString(string(p)) }

func (w *decidingWriter) WriteString(s string) (int, error) {
	w.wrote = true
	if w.Status() >= http.StatusBadRequest {
		w.Header().Del("Content-Encoding")
	}
	return w.ResponseWriter.WriteString(s)
}

// embedding is a layer that has a separate writer and makes no change.
func embedding(c *gin.Context) {
	c.Writer = struct{ gin.ResponseWriter }{c.Writer}
	c.Next()
}

// Gin writes its default body for a route that it does not know, unless the header was
// written.
func TestHeaderWithoutABodyOnNoRoute(t *testing.T) {
	t.Parallel()
	for layer, outer := range map[string]gin.HandlerFunc{"none": func(*gin.Context) {}, "embedding": embedding} {
		b := setup(t, protocol.Config{})
		b.Use(outer, b.guarded, func(c *gin.Context) {
			switch c.Request.URL.Path {
			case "/now":
				c.Writer.WriteHeaderNow()
			case "/empty":
				_, _ = c.Writer.Write(nil)
			case "/flushed":
				c.Writer.Flush()
			}
		})
		for path, body := range map[string]string{"/now": "", "/empty": "", "/flushed": "", "/nothing": "404 page not found"} {
			bare := b.Send("POST", path)
			first, again := b.Twice("POST", path)
			for _, a := range []harness.Response{bare, first, again} {
				if a.Status != http.StatusNotFound || a.Body != body || a.Header.Get("Content-Type") != bare.Header.Get("Content-Type") {
					t.Errorf("%s below %s: answered %+v, want the body %q", path, layer, a, body)
				}
			}
		}
	}
}

// A layer outside decides about the header with the first byte, or with none: it is not
// sent before.
func TestHeaderIsLeftToTheLayersOutside(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	for path, handler := range map[string]gin.HandlerFunc{
		"/json":     created,
		"/refused":  func(c *gin.Context) { c.AbortWithStatusJSON(http.StatusConflict, gin.H{"error": "taken"}) },
		"/empty":    func(c *gin.Context) { c.Status(http.StatusNoContent) },
		"/missing":  func(c *gin.Context) { c.Status(http.StatusNotFound) },
		"/redirect": func(c *gin.Context) { c.Redirect(http.StatusSeeOther, "/json") },
		"/silent":   func(*gin.Context) {},
	} {
		b.POST(path, deciding, b.guarded, handler)
		bare := b.Send("POST", path)
		first, _ := b.Twice("POST", path)
		if first.Status != bare.Status || first.Body != bare.Body || !maps.EqualFunc(first.Kept(), bare.Kept(), slices.Equal) {
			t.Errorf("%s: answered %+v, and %+v without a key", path, first, bare)
		}
	}
}
