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

	"github.com/reprise-go/reprise/core/protocol"
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
	HeldBodies int64            // in bytes: what has come of bodies of requests with a key
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

// nearlyFull is the part of the room for bodies, as a divisor, of which the last one is
// too small for another body.
const nearlyFull = 16

// Full returns an error that names the bound that leaves no room for another request, nil
// if none does.
func (h *Handler) Full() error {
	switch rt := h.current.Load(); {
	case h.running.Load() >= int64(rt.maxRequests):
		return fmt.Errorf("proxy: %d requests run, which is max_requests", rt.maxRequests)
	case h.held.Load() > rt.maxHeld-rt.maxHeld/nearlyFull:
		return fmt.Errorf("proxy: held bodies take almost %d bytes, which is max_held_bodies", rt.maxHeld)
	}
	return nil
}

// busy is the response to a request that was not sent, because there is no room for it.
func busy(bound string) protocol.Response {
	return protocol.Response{
		Status: http.StatusServiceUnavailable,
		Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: "text/plain; charset=utf-8"}, protocol.Field{Name: "Retry-After", Value: "1"}),
		Body:   []byte("The proxy is at its limit of " + bound + ". The request was not sent; retry it later.\n"),
	}
}

// body is the body of a request with a key, which the guard reads before the handler
// runs. Each byte of it gives the client time for further ones, and counts as held: a
// client that sends only its header holds none.
type body struct {
	io.ReadCloser

	response *response
	due      time.Time
	most     int64 // bytes, that all bodies may have
	size     int64 // bytes, that are counted
}

// errFull ends a body for which there is no room.
var errFull = errors.New("proxy: there is no room for the body")

// Read implements [io.Reader]. If the writer has no deadlines, the server must bound the
// time.
func (b *body) Read(p []byte) (int, error) {
	control, h, ctx := http.NewResponseController(b.response.ResponseWriter), b.response.handler, b.response.request.Context()
	_ = control.SetReadDeadline(b.due)
	n, err := b.ReadCloser.Read(p)
	b.due = b.due.Add(time.Duration(n) * b.response.perByte)
	b.size += int64(n)
	switch all := h.held.Add(int64(n)); {
	case n > 0 && all > b.most:
		b.letGo() // the guard keeps none of it
		h.meet(ctx, LimitHeldBodies, b.response)
		b.response.full = true
		return 0, errFull
	case errors.Is(err, os.ErrDeadlineExceeded):
		h.meet(ctx, LimitBodyTime, b.response)
	case err == io.EOF: // the wait for a replay, and the run, have their own bounds
		_ = control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// letGo gives back what the body counted.
func (b *body) letGo() {
	b.response.handler.held.Add(-b.size)
	b.size = 0
}
