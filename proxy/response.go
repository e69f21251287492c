package proxy

import (
	"context"
	"log/slog"
	"mime"
	"net/http"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// response is the writer outside the guard. It records the status and the length for the
// access log, and restores the mark of a replay by the upstream, which the guard removes
// from responses.
type response struct {
	http.ResponseWriter

	status   int // 0: no response
	bytes    int64
	replayed string // the name of the field to set; empty: none
	released bool   // the key, because the upstream decides about the retry

	handler *Handler
	request *http.Request
	policy  string        // its name
	pattern string        // of the route; empty: none matches
	id      store.ID      // of the record; zero: none
	code    protocol.Code // of the problem that the client gets; empty: none
	timeout time.Duration // of each write
	perByte time.Duration // beside it
	late    bool          // a write took longer
	full    bool          // there was no room for the body
	ends    bool          // the connection, with the response
}

type responseKey struct{}

// responseOf returns the response of a request that a [Handler] serves.
func responseOf(ctx context.Context) *response {
	r, _ := ctx.Value(responseKey{}).(*response)
	return r
}

// WriteHeader implements [http.ResponseWriter].
func (r *response) WriteHeader(status int) {
	if (status == http.StatusBadGateway || status == http.StatusServiceUnavailable) && r.request.Context().Err() != nil {
		status = StatusClientLeft // the request was cancelled, and did not fail
	}
	if informational := status >= 100 && status < 200; !informational || status == http.StatusSwitchingProtocols {
		r.begin(status)
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (r *response) Write(p []byte) (int, error) {
	r.begin(http.StatusOK)
	var n int
	err := r.bounded(len(p), func() (err error) {
		n, err = r.ResponseWriter.Write(p)
		return err
	})
	r.bytes += int64(n)
	return n, err
}

// FlushError is called by [http.ResponseController.Flush].
func (r *response) FlushError() error {
	return r.bounded(0, http.NewResponseController(r.ResponseWriter).Flush)
}

// bounded bounds the time of a write of some bytes.
func (r *response) bounded(n int, write func() error) error {
	due := r.arm(n)
	err := write()
	if err != nil && !time.Now().Before(due) && !r.late {
		r.late = true
		r.handler.meet(r.request.Context(), LimitWriteTime, r)
	}
	if r.request.ProtoMajor == 2 { // whose deadline ends a stream that writes nothing, too
		_ = http.NewResponseController(r.ResponseWriter).SetWriteDeadline(time.Time{})
	}
	return err
}

// arm sets the time until which a write of some bytes has to end.
func (r *response) arm(n int) time.Time {
	due := time.Now().Add(r.timeout + time.Duration(n)*r.perByte)
	_ = http.NewResponseController(r.ResponseWriter).SetWriteDeadline(due)
	return due
}

func (r *response) begin(status int) {
	if r.status != 0 {
		return
	}
	r.status = status
	if r.ends && status != http.StatusSwitchingProtocols { // not before: an informational response clears the header
		r.Header().Set("Connection", "close")
	}
	if r.replayed != "" {
		r.Header().Set(r.replayed, "true")
	}
}

// Unwrap gives [http.ResponseController] access to the connection.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// heldBack does not flush the response to a request with a key, so that the response
// leaves after it is recorded, or says that it is not. Server-sent events are flushed,
// because they are useless unless they come at once.
type heldBack struct{ http.ResponseWriter }

// holdingBack wraps the writers of requests with a key in heldBack.
func holdingBack(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, keyed := reprise.AttemptFrom(r.Context()); keyed {
			w = heldBack{w}
		}
		next.ServeHTTP(w, r)
	})
}

// FlushError is called by [http.ResponseController.Flush].
func (w heldBack) FlushError() error {
	if media, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type")); media != "text/event-stream" {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap gives [http.ResponseController] access to the connection.
func (w heldBack) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// noteID keeps the ID of a request's record for its line in the access log.
func noteID(ctx context.Context, e reprise.Event) {
	if resp := responseOf(ctx); resp != nil && e.Outcome != 0 { // these come while the request is served
		resp.id = e.ID
	}
}

// noteProblem keeps the code of the problem that a guard answers with. A body for which
// there was no room is not the fault of the request.
func noteProblem(ctx context.Context, _ *protocol.Request, p protocol.Problem) protocol.Response {
	resp := responseOf(ctx)
	if resp.full {
		return busy("bodies in memory")
	}
	resp.code = p.Code
	return p.Response()
}

// logAccess writes the line of a request. It has the method, the host and the path, which
// the client chose, and no key.
func (h *Handler) logAccess(r *http.Request, p *policy, resp *response, took time.Duration) {
	if h.access == nil {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("host", r.Host), slog.String("path", r.URL.EscapedPath()),
		slog.String("protocol", r.Proto), slog.String("peer", r.RemoteAddr), slog.String("policy", p.name),
		slog.Int("status", resp.status), slog.Int64("bytes", resp.bytes), slog.Float64("seconds", took.Seconds()),
		slog.Bool("replayed", p.replayed != "" && resp.Header().Get(p.replayed) == "true"),
	}
	if resp.id != (store.ID{}) {
		attrs = append(attrs, slog.String("id", resp.id.Short()))
	}
	if resp.code != "" {
		attrs = append(attrs, slog.String("code", string(resp.code)))
	}
	h.access.LogAttrs(r.Context(), slog.LevelInfo, "request", attrs...)
}
