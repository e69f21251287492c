package repriseecho

import (
	"bufio"
	"net"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/reprise-go/reprise/core/protocol"
)

// writer is what Echo's response writes to while a handler is recorded. What it does not have itself,
// [http.ResponseController] finds behind it.
type writer struct {
	*protocol.Recorder // WriteHeader, Write, WriteString, ReadFrom

	behind http.ResponseWriter
}

// Header returns the map that all layers share.
func (w *writer) Header() http.Header { return w.behind.Header() }

// FlushError is what Echo's Flush calls. Where the effects commit with the response it does nothing.
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

// wire writes past Echo's response, and tells it what was sent, for the layers that log it.
type wire struct {
	http.ResponseWriter

	response *echo.Response
	sent     bool
}

// WriteHeader implements [protocol.Wire].
func (w *wire) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.sent, w.response.Committed, w.response.Status = true, true, status
	}
	w.ResponseWriter.WriteHeader(status)
}
