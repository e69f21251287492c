package reprisegin

import (
	"context"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/reprise-go/reprise/core/protocol"
)

// writer is the gin.ResponseWriter of a chain that is recorded. As Gin's own does, it
// holds the status back until the first byte, so that a handler may still change it.
type writer struct {
	gin.ResponseWriter // of the layers outside, for Header and Pusher

	rec  protocol.Recorder
	wire wire
	ctx  context.Context // of the exchange

	mu      sync.Mutex // a timeout outside may abort the chain from its own goroutine
	status  int
	size    int
	decided bool // the chain set a status
}

const notWritten = -1

func newWriter(outer gin.ResponseWriter, x *protocol.Exchange) *writer {
	w := &writer{ResponseWriter: outer, ctx: x.Context(), status: outer.Status(), size: notWritten}
	w.wire.ResponseWriter = outer
	w.rec.Start(x, outer.Header(), &w.wire, http.DetectContentType)
	return w
}

// WriteHeader sets the status until the header is written.
func (w *writer) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if status > 0 && w.size == notWritten {
		w.status, w.decided = status, true
	}
}

// WriteHeaderNow writes status and header, unless a layer outside has responded instead
// of the chain. The call may then be that layer's, which aborts the chain through the
// context they share: the status is decided when the chain writes its first byte.
func (w *writer) WriteHeaderNow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.decided = true
	if !w.ResponseWriter.Written() {
		w.commitNow()
	}
}

// commitNow is commit for a header that is written before any byte. The caller holds mu.
func (w *writer) commitNow() {
	if w.size == notWritten {
		w.wire.now = true
		w.commit()
	}
}

// commit writes status and header, once. An informational status goes out, and the first
// byte then follows a 200, as net/http has it. The caller holds mu.
func (w *writer) commit() {
	if w.size == notWritten {
		w.size = 0
		w.rec.WriteHeader(w.status)
	}
}

// finish ends the exchange with the response as it is. Of a chain that wrote none of it,
// Gin holds the header until the layers outside have returned.
func (w *writer) finish() {
	w.mu.Lock()
	w.wire.empty = w.size == 0
	w.commit()
	w.mu.Unlock()
	w.rec.Finish()
}

// answered reports whether the chain made a response: it set a status or wrote.
func (w *writer) answered() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.decided || w.size != notWritten
}

// Write implements [io.Writer].
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commit()
	n, err := w.rec.Write(p)
	w.size += n
	return n, err
}

// WriteString implements [io.StringWriter].
func (w *writer) WriteString(s string) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commit()
	n, err := w.rec.WriteString(s)
	w.size += n
	return n, err
}

// Status returns the status that was, or will be, written.
func (w *writer) Status() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// Size returns how many bytes of the body were written, -1 before the header was.
func (w *writer) Size() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size
}

// Written reports whether the header was written.
func (w *writer) Written() bool { return w.Size() != notWritten }

// noRoute writes Gin's response for an unmatched route without a handler's response; Gin
// does so after the middlewares, which is too late to be recorded.
func (w *writer) noRoute() {
	text := map[int]string{
		http.StatusNotFound:         "404 page not found",
		http.StatusMethodNotAllowed: "405 method not allowed",
	}[w.Status()]
	if text != "" {
		w.Header()["Content-Type"] = []string{gin.MIMEPlain}
		_, _ = w.WriteString(text)
	}
}

// wire writes to the writer of the layers outside, in the way in which the chain wrote.
type wire struct {
	gin.ResponseWriter

	now   bool // the chain wrote the header, which Gin's WriteHeader leaves to the first byte
	empty bool // it wrote a body without a byte
}

// WriteHeader implements [protocol.Wire].
func (w *wire) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		w.inform(status)
		return
	}
	w.ResponseWriter.WriteHeader(status)
	switch {
	case w.now:
		w.WriteHeaderNow()
	case w.empty:
		_, _ = w.Write(nil)
	}
}

// inform sends an informational status past Gin's writers, whose final status would be
// 200 from then on, whatever the reply becomes. It is lost where a writer cannot be
// passed.
func (w *wire) inform(status int) {
	var behind http.ResponseWriter = w.ResponseWriter
	for {
		if _, own := behind.(gin.ResponseWriter); !own {
			behind.WriteHeader(status)
			return
		}
		unwrapper, ok := behind.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		behind = unwrapper.Unwrap()
	}
}
