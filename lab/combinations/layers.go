package combinations

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The bounds of the layers outside.
const (
	layerTimeout = 1200 * time.Millisecond
	layerLimit   = 45 // bytes of a request's body
)

// timesOut is the layer whose writer cannot be flushed.
const timesOut = "times out"

// layers stand outside the middleware, as those of a framework or a company do.
var layers = map[string]func(http.Handler) http.Handler{
	"drains the body": before(func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }),
	"parses the form": before(func(r *http.Request) { _ = r.ParseForm() }),
	"decodes one value": before(func(r *http.Request) {
		var v any
		_ = json.NewDecoder(r.Body).Decode(&v)
	}),
	"buffers the body": before(func(r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}),
	"limits the body": func(next http.Handler) http.Handler { return http.MaxBytesHandler(next, layerLimit) },
	timesOut:          func(next http.Handler) http.Handler { return http.TimeoutHandler(next, layerTimeout, timedOut) },
	"compresses": func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			z := &compressed{ResponseWriter: w}
			next.ServeHTTP(z, r)
			if z.gzip != nil {
				_ = z.gzip.Close()
				gzips.Put(z.gzip)
			}
		})
	},
}

var layerNames = slices.Sorted(maps.Keys(layers))

// timedOut is the body of a response of the timeout.
const timedOut = "timed out"

func before(do func(*http.Request)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			do(r)
			next.ServeHTTP(w, r)
		})
	}
}

// gzips are writers that are used again: a new one takes long to make.
var gzips = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// compressed compresses the body of a response that has none of its own coding.
type compressed struct {
	http.ResponseWriter
	gzip *gzip.Writer
}

func (z *compressed) WriteHeader(status int) {
	if status >= 200 && status != http.StatusNoContent {
		z.Header().Del("Content-Length")
		z.Header().Set("Content-Encoding", "gzip")
	}
	z.ResponseWriter.WriteHeader(status)
}

func (z *compressed) Write(p []byte) (int, error) {
	if z.gzip == nil {
		if z.Header().Get("Content-Encoding") == "" {
			z.Header().Set("Content-Encoding", "gzip")
		}
		z.gzip = gzips.Get().(*gzip.Writer)
		z.gzip.Reset(z.ResponseWriter)
	}
	return z.gzip.Write(p)
}

// Flush implements [http.Flusher].
func (z *compressed) Flush() {
	if z.gzip != nil {
		_ = z.gzip.Flush()
	}
	_ = http.NewResponseController(z.ResponseWriter).Flush()
}

// uncompressed returns the body that a client sees.
func uncompressed(body []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return body
	}
	plain, _ := io.ReadAll(z)
	return plain
}
