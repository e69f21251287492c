package repriseecho5

import (
	"bufio"
	"net"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/reprise-go/reprise/core/protocol"
)

// writer is what the [echo.Response] of a recorded handler writes to.
// [http.ResponseController] finds behind it what it does not have.
type writer struct {
	protocol.Recorder // WriteHeader, Write, WriteString, ReadFrom

	wire wire
}

// Header returns the map that all layers share.
func (w *writer) Header() http.Header { return w.wire.Header() }

// FlushError is what Echo's Flush calls. It does nothing where the effects commit with
// the response.
func (w *writer) FlushError() error {
	if !w.Recorder.Flush() {
		return nil
	}
	return http.NewResponseController(w.wire.ResponseWriter).Flush()
}

// Hijack implements [http.Hijacker].
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.wire.ResponseWriter).Hijack()
	if err == nil {
		w.Recorder.Hijack()
	}
	return conn, rw, err
}

// Unwrap lets [http.ResponseController] reach the deadlines of the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.wire.ResponseWriter }

// wire is the response of the layers outside, which runs their hooks and counts what is
// sent.
type wire struct{ http.ResponseWriter }

// WriteHeader implements [protocol.Wire].
func (w *wire) WriteHeader(status int) {
	to := w.ResponseWriter
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		if response, err := echo.UnwrapResponse(to); err == nil {
			to = response.ResponseWriter // Echo's response takes any status as the final one
		}
	}
	to.WriteHeader(status)
}
