package reprisegin

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reprise-go/reprise/core/protocol"
)

// writer is the gin.ResponseWriter of handlers that are recorded. As Gin's own it holds the status back until the first
// byte, so that it may still change.
type writer struct {
	gin.ResponseWriter // Header and Pusher

	rec    protocol.Recorder
	wire   wire
	ctx    context.Context // of the exchange
	status int
	size   int
}

const notWritten = -1

var errWritten = errors.New("reprisegin: the response body was written before the connection was hijacked")

// WriteHeader sets the status, until it was written. An informational one goes out at once.
func (w *writer) WriteHeader(status int) {
	switch {
	case status >= 100 && status < 200 && status != http.StatusSwitchingProtocols:
		w.rec.WriteHeader(status)
	case status > 0 && !w.Written():
		w.status = status
	}
}

// WriteHeaderNow writes status and header.
func (w *writer) WriteHeaderNow() {
	if !w.Written() {
		w.size = 0
		w.rec.WriteHeader(w.status)
	}
}

// Write implements [io.Writer].
func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeaderNow()
	n, err := w.rec.Write(p)
	w.size += n
	return n, err
}

// WriteString implements [io.StringWriter].
func (w *writer) WriteString(s string) (int, error) {
	w.WriteHeaderNow()
	n, err := w.rec.WriteString(s)
	w.size += n
	return n, err
}

// Status returns the status that was, or will be, written.
func (w *writer) Status() int { return w.status }

// Size returns how many bytes of the body were written, -1 before the header was.
func (w *writer) Size() int { return w.size }

// Written reports whether the header was written.
func (w *writer) Written() bool { return w.size != notWritten }

// Flush implements [http.Flusher]. Where the effects commit with the response it does nothing.
func (w *writer) Flush() {
	w.WriteHeaderNow()
	if w.rec.Flush() {
		w.ResponseWriter.Flush()
	}
}

// CloseNotify implements [http.CloseNotifier]: it tells that the run is over or has lost its lease. A client that leaves does not
// stop it, and must not make a stream end as if it were complete.
func (w *writer) CloseNotify() <-chan bool {
	over := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { over <- true })
	return over
}

// Hijack implements [http.Hijacker], under the conditions of Gin's own.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.size > 0 {
		return nil, nil, errWritten
	}
	conn, rw, err := w.ResponseWriter.Hijack()
	if err == nil {
		w.size = 0
		w.rec.Hijack()
	}
	return conn, rw, err
}

// Unwrap lets [http.ResponseController] reach the deadlines of the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// noRoute writes what Gin writes when no route and no handler of its own answered: it does so after the middlewares, which is too
// late to be recorded.
func (w *writer) noRoute() {
	text := map[int]string{http.StatusNotFound: "404 page not found", http.StatusMethodNotAllowed: "405 method not allowed"}[w.status]
	if text != "" {
		w.Header()["Content-Type"] = []string{gin.MIMEPlain}
		_, _ = w.WriteString(text)
	}
}
