package reprisehttp

import (
	"bufio"
	"net"
	"net/http"

	"github.com/reprise-go/reprise/core/protocol"
)

// writer is the http.ResponseWriter of a handler that is recorded. What it does not have itself, [http.ResponseController]
// finds behind it.
type writer struct {
	protocol.Recorder // WriteHeader, Write, WriteString, ReadFrom

	behind http.ResponseWriter
}

// Header returns the map that all layers share.
func (w *writer) Header() http.Header { return w.behind.Header() }

// Flush implements [http.Flusher].
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError is what [http.ResponseController.Flush] calls. Where the effects commit with the response it does nothing.
func (w *writer) FlushError() error {
	if !w.Recorder.Flush() {
		return nil
	}
	return http.NewResponseController(w.behind).Flush()
}

// Hijack implements [http.Hijacker].
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.behind).Hijack()
	if err == nil {
		w.Recorder.Hijack()
	}
	return conn, rw, err
}

// Unwrap lets [http.ResponseController] reach the deadlines of the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.behind }
