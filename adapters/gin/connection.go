package reprisegin

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
)

// How handlers use the connection below the response: flush it, watch it, take it.

var errWritten = errors.New("reprisegin: the response body was written before the connection was hijacked")

// Flush implements [http.Flusher]. It is a no-op if the effects commit with the response.
func (w *writer) Flush() {
	w.mu.Lock()
	w.commitNow()
	w.mu.Unlock()
	if w.rec.Flush() {
		w.ResponseWriter.Flush()
	}
}

// CloseNotify implements [http.CloseNotifier]: it signals the end of the run, or the loss
// of its lease. A client disconnect is not signalled, because a stream that ended then
// would be recorded as if it were complete.
func (w *writer) CloseNotify() <-chan bool {
	over := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { over <- true })
	return over
}

// Hijack implements [http.Hijacker], under the conditions of Gin's own, and sends a
// header that was written first, unless the effects commit with the response.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.size > 0 {
		return nil, nil, errWritten
	}
	w.rec.FlushAll()
	conn, rw, err := w.ResponseWriter.Hijack()
	if err == nil {
		w.size = 0
		w.rec.Hijack()
	}
	return conn, rw, err
}

// Unwrap lets [http.ResponseController] reach the deadlines of the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
