package stdhttp

import (
	"bufio"
	"errors"
	"net"
	"net/http"

	"github.com/reprise-go/reprise/core/protocol"
)

// Writer is the [http.ResponseWriter] of a recorded handler. [http.ResponseController]
// finds the methods that it does not have in the writer behind it.
type Writer struct {
	protocol.Recorder // WriteHeader, Write, WriteString, ReadFrom

	Behind http.ResponseWriter
}

// Header returns the map that all layers share.
func (w *Writer) Header() http.Header { return w.Behind.Header() }

// Flush implements [http.Flusher].
func (w *Writer) Flush() { _ = w.FlushError() }

// FlushError is called by [http.ResponseController.Flush]. It is a no-op if the effects
// commit with the response. As Write does, it succeeds although the client has left,
// unless the rest of the body has no use.
func (w *Writer) FlushError() error {
	if !w.Recorder.Flush() {
		return nil
	}
	err := http.NewResponseController(w.Behind).Flush()
	if err == nil || errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return w.FlushFailed(err)
}

// Hijack implements [http.Hijacker]. As net/http does, it first sends the response as far
// as it was written, such as the header of a 101, unless the effects commit with the
// response.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.Status() != 0 {
		w.Recorder.Flush()
	}
	conn, rw, err := http.NewResponseController(w.Behind).Hijack()
	if err == nil {
		w.Recorder.Hijack()
	}
	return conn, rw, err
}

// Unwrap gives [http.ResponseController] access to the deadlines of the connection.
func (w *Writer) Unwrap() http.ResponseWriter { return w.Behind }
