package repriseclient

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// endless is a body that never ends, and counts the bytes read from it.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.read.Add(int64(len(p)))
	return len(p), nil
}

func (e *endless) Close() error { return nil }

// A service cannot exhaust the memory of a caller, even with a small response that
// unpacks to a large one: neither by a final response nor by one that is retried, nor by
// a problem.
func TestEndlessResponsesAreNotBuffered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status   int
		media    string
		attempts int
		most     int64 // of each attempt
	}{
		"an answer":                {200, "application/json", 1, 1<<20 + 1},
		"a problem":                {422, "application/problem+json", 1, 1<<20 + 1},
		"a problem that may pass":  {503, "application/problem+json", 3, 1<<20 + 1 + maxDrain},
		"a gateway's page":         {502, "text/html", 3, 1<<20 + 1 + maxDrain},
		"an event stream":          {200, "text/event-stream", 1, 0},
		"an event stream that may": {503, "text/event-stream", 3, maxDrain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bodies []*endless
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				bodies = append(bodies, new(endless))
				return &http.Response{
					StatusCode: c.status, Header: http.Header{"Content-Type": {c.media}}, Body: bodies[len(bodies)-1],
					ContentLength: -1, Request: req,
				}, nil
			})
			transport := newTransport(t, base, Config{MaxAttempts: 3, Delay: time.Millisecond})
			resp, err := transport.RoundTrip(post(t.Context(), t, strings.NewReader("{}")))
			must(t, err)
			for i, body := range bodies {
				if n := body.read.Load(); n > c.most {
					t.Errorf("attempt %d: %d bytes were read, want %d at most", i+1, n, c.most)
				}
			}
			if _, ok := ProblemOf(resp); ok {
				t.Error("what has no end is a problem document")
			}
			if n, err := io.CopyN(io.Discard, resp.Body, 4<<20); n != 4<<20 {
				t.Errorf("%d bytes, %v", n, err)
			}
			_ = resp.Body.Close()
			if len(bodies) != c.attempts {
				t.Errorf("%d attempts, want %d", len(bodies), c.attempts)
			}
		})
	}
}
