package stdhttp

import (
	"bufio"
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
// unless the rest of the body has no use. Where the writers outside cannot flush, it has
// no effect, as with [http.ResponseController].
func (w *Writer) FlushError() error {
	if !flushes(w.Behind) {
		return http.ErrNotSupported
	}
	if !w.Recorder.Flush() {
		return nil
	}
	if err := http.NewResponseController(w.Behind).Flush(); err != nil {
		return w.FlushFailed(err)
	}
	return nil
}

// flushes reports whether [http.ResponseController] finds a way to flush a writer.
func flushes(w http.ResponseWriter) bool {
	for {
		switch behind := w.(type) {
		case *Writer:
			w = behind.Behind // which has the method, and may have no use for it
		case interface{ FlushError() error }, http.Flusher:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = behind.Unwrap()
		default:
			return false
		}
	}
}

// Hijack implements [http.Hijacker]. As net/http does, it first sends the response as far
// as it was written, such as the header of a 101, unless the effects commit with the
// response.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.FlushAll() {
		_ = http.NewResponseController(w.Behind).Flush()
	}
	conn, rw, err := http.NewResponseController(w.Behind).Hijack()
	if err == nil {
		w.Recorder.Hijack()
	}
	return conn, rw, err
}

// Unwrap gives [http.ResponseController] access to the deadlines of the connection.
func (w *Writer) Unwrap() http.ResponseWriter { return w.Behind }
