package reprisehttp

import (
	"bufio"
	"net"
	"net/http"

	"github.com/reprise-go/reprise/core/protocol"
)

// writer is the http.ResponseWriter of a recorded handler. [http.ResponseController]
// finds what it does not implement in the writer behind it.
type writer struct {
	protocol.Recorder // WriteHeader, Write, WriteString, ReadFrom

	behind   http.ResponseWriter
	hijacked bool
}

// Header returns the map that all layers share.
func (w *writer) Header() http.Header { return w.behind.Header() }

// Flush implements [http.Flusher].
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError is what [http.ResponseController.Flush] calls. It does nothing if the
// effects commit with the response.
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
		w.hijacked = true
		w.Recorder.Hijack()
	}
	return conn, rw, err
}

// Unwrap gives [http.ResponseController] access to the deadlines of the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.behind }
