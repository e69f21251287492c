package reprisehttp

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/reprise-go/reprise/core/protocol"
)

// writer is the http.ResponseWriter of a handler that is recorded. What it does not have itself, [http.ResponseController]
// finds behind it.
type writer struct {
	http.ResponseWriter // the header is the one of all layers

	rec *protocol.Recorder
}

// WriteHeader implements [http.ResponseWriter].
func (w *writer) WriteHeader(status int) { w.rec.WriteHeader(status) }

// Write implements [io.Writer].
func (w *writer) Write(p []byte) (int, error) { return w.rec.Write(p) }

// WriteString implements [io.StringWriter].
func (w *writer) WriteString(s string) (int, error) { return w.rec.WriteString(s) }

// ReadFrom implements [io.ReaderFrom], so that io.Copy does not find the one of the connection behind it.
func (w *writer) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{w.rec}, r) }

// Flush implements [http.Flusher].
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError is what [http.ResponseController.Flush] calls. Where the effects commit with the response it does nothing.
func (w *writer) FlushError() error {
	if !w.rec.Flush() {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack implements [http.Hijacker].
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.rec.Hijack()
	}
	return conn, rw, err
}

// Unwrap lets [http.ResponseController] reach the deadlines of the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
