package reprisegin

import (
	"compress/gzip"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
)

// quiet takes what net/http has to say about handlers that panic.
var quiet = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)

// gzipWriter compresses what is written. As usual it hides what Gin's own writer can
// unwrap.
type gzipWriter struct {
	gin.ResponseWriter

	zip *gzip.Writer
}

func (w *gzipWriter) Write(p []byte) (int, error) {
	if w.zip == nil {
		w.zip = gzip.NewWriter(w.ResponseWriter)
	}
	w.Header().Del("Content-Length")
	return w.zip.Write(p)
}

func (w *gzipWriter) WriteString(s string) (int, error) {
	p := []byte(s)
	return w.Write(p)
}

func (w *gzipWriter) Flush() {
	if w.zip != nil {
		_ = w.zip.Flush()
	}
	w.ResponseWriter.Flush()
}

func (w *gzipWriter) close() {
	if w.zip != nil {
		_ = w.zip.Close()
	}
}

func unzip(t *testing.T, body string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatalf("%q is not compressed: %v", body, err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
