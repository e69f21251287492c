package repriseecho

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

// quiet takes what net/http has to say about handlers that panic.
var quiet = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)

// gzipped is a middleware in the manner of Echo's own: it takes the place of the
// response's writer.
func gzipped(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		response := c.Response()
		w := &gzipWriter{ResponseWriter: response.Writer}
		response.Writer = w
		response.Header().Set("Content-Encoding", "gzip")
		err := next(c)
		if w.zip != nil {
			_ = w.zip.Close()
		}
		response.Writer = w.ResponseWriter
		return err
	}
}

// gzipWriter compresses what is written.
type gzipWriter struct {
	http.ResponseWriter

	zip *gzip.Writer
}

func (w *gzipWriter) Write(p []byte) (int, error) {
	if w.zip == nil {
		w.zip = gzip.NewWriter(w.ResponseWriter)
	}
	return w.zip.Write(p)
}

func (w *gzipWriter) Flush() {
	if w.zip != nil {
		_ = w.zip.Flush()
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush()
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
