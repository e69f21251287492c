package broken

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/reprise-go/reprise/core/protocol"
)

// writer is the http.ResponseWriter of a handler that is recorded.
type writer struct {
	http.ResponseWriter

	rec  *protocol.Recorder
	flaw Flaw
	done bool // a status was taken for the final one

	status   int
	size     int
	left     bool // a write failed
	reported bool
}

func (a *adapter) writer(w http.ResponseWriter, rec *protocol.Recorder) *writer {
	return &writer{ResponseWriter: w, rec: rec, flaw: a.flaw}
}

// WriteHeader implements [http.ResponseWriter].
func (w *writer) WriteHeader(status int) {
	if w.flaw == "informational-is-final" {
		if w.done {
			return
		}
		w.done = true
	}
	w.status = status
	if h := w.Header(); w.flaw == "hides-length" && h.Get("Content-Length") != "" {
		h.Set(hiddenLength, h.Get("Content-Length"))
		h.Del("Content-Length")
	}
	w.rec.WriteHeader(status)
}

// hiddenLength is where "hides-length" keeps the length.
const hiddenLength = "X-Hidden-Length"

// wire returns the way to the client.
func (a *adapter) wire(w http.ResponseWriter) protocol.Wire {
	switch a.flaw {
	case "hides-length":
		return lengthWire{w}
	case "forgets-expiry", "promises-expiry", "one-link":
		return editingWire{w, a.flaw}
	default:
		return w
	}
}

// editingWire changes the fields that the policy adds to a response.
type editingWire struct {
	http.ResponseWriter

	flaw Flaw
}

// WriteHeader implements [protocol.Wire].
func (w editingWire) WriteHeader(status int) {
	h := w.Header()
	switch links := h["Link"]; {
	case w.flaw == "forgets-expiry":
		h.Del(protocol.FieldExpires)
	case w.flaw == "promises-expiry":
		h.Set(protocol.FieldExpires, "@4102444800")
	case len(links) > 1:
		h["Link"] = links[len(links)-1:]
	}
	w.ResponseWriter.WriteHeader(status)
}

// lengthWire declares the length that was hidden from the recorder.
type lengthWire struct{ http.ResponseWriter }

// WriteHeader implements [protocol.Wire].
func (w lengthWire) WriteHeader(status int) {
	if h := w.Header(); h.Get(hiddenLength) != "" {
		h.Set("Content-Length", h.Get(hiddenLength))
		h.Del(hiddenLength)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Report is where handlers report errors that are not their response.
func (w *writer) Report(error) { w.reported = true }

// Write implements [io.Writer].
func (w *writer) Write(p []byte) (int, error) {
	w.size += len(p)
	n, err := w.rec.Write(p)
	w.left = w.left || err != nil
	return n, err
}

// WriteString implements [io.StringWriter].
func (w *writer) WriteString(s string) (int, error) {
	if w.flaw == "strings-pass" {
		return io.WriteString(w.ResponseWriter, s)
	}
	return w.rec.WriteString(s)
}

// ReadFrom implements [io.ReaderFrom].
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	if w.flaw == "copies-pass" {
		return io.Copy(w.ResponseWriter, r)
	}
	return io.Copy(struct{ io.Writer }{w.rec}, r)
}

// FlushError implements [http.ResponseController.Flush].
func (w *writer) FlushError() error {
	if w.flaw == "swallows-flush" || !w.rec.Flush() {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack implements [http.Hijacker].
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := hijack(w.ResponseWriter)
	if err == nil && w.flaw != "hijacks-untold" {
		w.rec.Hijack()
	}
	return conn, rw, err
}
