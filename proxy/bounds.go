package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// StatusClientLeft is the status in the access log, and in metrics around the [Handler],
// of a request whose client left before its response.
const StatusClientLeft = 499

// The bounds of a [Handler], by the fields of the [Config] that set them.
const (
	LimitRequests   = "max_requests"
	LimitHeldBodies = "max_held_bodies"
	LimitBodyTime   = "body_timeout"
	LimitWriteTime  = "write_timeout"
	LimitNormalForm = "normal_form" // of requests, that no field sets
)

// Stats are the numbers of a [Handler].
type Stats struct {
	Requests   int64            // that are being served
	HeldBodies int64            // in bytes: what bodies of requests with a key take, or may take
	Limited    map[string]int64 // the requests that met each bound, since the handler was made
}

// limits counts the requests that met each bound.
type limits map[string]*limit

type limit struct {
	met    atomic.Int64
	logged atomic.Int64 // when, in seconds of Unix
}

func newLimits() limits {
	l := limits{}
	for _, name := range []string{LimitRequests, LimitHeldBodies, LimitBodyTime, LimitWriteTime, LimitNormalForm} {
		l[name] = new(limit)
	}
	return l
}

// logEvery is how often a bound has a line in the log at most.
const logEvery = 60 // seconds

// meet counts a request, and logs that the bound is met.
func (h *Handler) meet(ctx context.Context, bound string, resp *response) {
	l := h.limits[bound]
	met, now := l.met.Add(1), time.Now().Unix()
	if last := l.logged.Load(); now-last >= logEvery && l.logged.CompareAndSwap(last, now) {
		h.log.WarnContext(ctx, "proxy: a bound is met",
			slog.String("bound", bound), slog.String("policy", resp.policy), slog.Int64("requests", met))
	}
}

// Stats returns the numbers of the handler.
func (h *Handler) Stats() Stats {
	s := Stats{Requests: h.running.Load(), HeldBodies: h.held.Load(), Limited: map[string]int64{}}
	for name, l := range h.limits {
		s.Limited[name] = l.met.Load()
	}
	return s
}

// Full returns an error that names the bound that leaves no room for another request, nil
// if none does.
func (h *Handler) Full() error {
	switch rt := h.current.Load(); {
	case h.running.Load() >= int64(rt.maxRequests):
		return fmt.Errorf("proxy: %d requests run, which is max_requests", rt.maxRequests)
	case h.held.Load() >= rt.maxHeld:
		return fmt.Errorf("proxy: held bodies take %d bytes, which is max_held_bodies", rt.maxHeld)
	}
	return nil
}

// busy refuses a request that was not sent, because there is no room for it.
func busy(w http.ResponseWriter, bound string) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "The proxy is at its limit of "+bound+". The request was not sent; retry it later.", http.StatusServiceUnavailable)
}

// hold counts the body of a request with a key, and reports whether there is room for it.
// A body of unknown length counts as the longest. What it counted, the caller gives back.
func (h *Handler) hold(r *http.Request, p *policy, most int64) (size int64, room bool) {
	if size = r.ContentLength; size < 0 || size > p.maxBody {
		size = p.maxBody
	}
	if h.held.Add(size) > most {
		h.held.Add(-size)
		return 0, false
	}
	return size, true
}

// body is the body of a request with a key, which the guard reads before the handler
// runs. Each byte of it gives the client time for further ones.
type body struct {
	io.ReadCloser

	response *response
	due      time.Time
	size     atomic.Int64 // that is counted; less at the end of a body of unknown length
	unread   int64        // of it
}

// Read implements [io.Reader]. If the writer has no deadlines, the server must bound the
// time.
func (b *body) Read(p []byte) (int, error) {
	control := http.NewResponseController(b.response.ResponseWriter)
	_ = control.SetReadDeadline(b.due)
	n, err := b.ReadCloser.Read(p)
	b.due = b.due.Add(time.Duration(n) * b.response.perByte)
	b.unread -= int64(n)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.response.handler.meet(b.response.request.Context(), LimitBodyTime, b.response)
	case err == io.EOF: // the wait for a replay, and the run, have their own bounds
		_ = control.SetReadDeadline(time.Time{})
		if b.unread > 0 {
			b.size.Add(-b.unread)
			b.response.handler.held.Add(-b.unread)
			b.unread = 0
		}
	}
	return n, err
}
