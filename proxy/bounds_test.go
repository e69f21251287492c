package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/proxy"
)

// dial connects to the proxy and sends the beginning of a request.
func (b *bundle) dial(text string) net.Conn {
	b.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(b.t.Context(), "tcp", strings.TrimPrefix(b.url, "http://"))
	must(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, text)
	must(b.t, err)
	return conn
}

// until polls until a condition holds, for a minute.
func until(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(time.Millisecond) { //nolint:forbidigo // polls another goroutine
		if time.Now().After(deadline) {
			t.Fatal("waited for a minute")
		}
	}
}

const keyed = "Host: x\r\nAuthorization: a\r\nIdempotency-Key: k1\r\n"

// A body that stalls ends after the time for its first byte, however long its bytes
// before would have been allowed to take, and one that is slow but steady does not.
func TestBodyOfARequestWithAKeyKeepsALeastRate(t *testing.T) {
	t.Parallel()
	b := setup(t, "body_timeout = '100ms'\nmin_rate = 1000000\n"+plain)
	for _, sent := range []string{"", "half"} {
		if got, _ := b.raw("POST /orders HTTP/1.1\r\n" + keyed + "Content-Length: 10\r\n\r\n" + sent); got.status != http.StatusBadRequest {
			t.Errorf("%q: got %d, want 400", sent, got.status)
		}
	}
	b.wantRuns(0)
	if got := b.handler.Stats().Limited[proxy.LimitBodyTime]; got != 2 {
		t.Errorf("%d bodies were too slow, want 2", got)
	}
	steady := setup(t, "body_timeout = '100ms'\nmin_rate = 1\n"+plain)
	conn := steady.dial("POST /orders HTTP/1.1\r\n" + keyed + "Content-Length: 65\r\n\r\n" + strings.Repeat("a", 60)) // which allow a minute more
	time.Sleep(200 * time.Millisecond)                                                                                //nolint:forbidigo // longer than a body without a byte may take
	_, _ = io.WriteString(conn, "other")
	buf := make([]byte, 12)
	if _, err := io.ReadFull(conn, buf); err != nil || string(buf) != "HTTP/1.1 201" {
		t.Errorf("got %q, %v, want 201", buf, err)
	}
}

// A client that does not read holds its response for as long as a write may take. HTTP/2
// learns of each deadline from another goroutine, which has to run before the last one.
func TestResponseThatIsNotReadEnds(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		b := setup(t, "write_timeout = '2s'\nmin_rate = 1000000000\n"+plain)
		ended := make(chan struct{})
		b.handle(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		})
		if protocol == "HTTP/1.1" {
			b.dial("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
		} else {
			b.speakHTTP2()
			_, err := b.client.Get(b.url + "/endless") //nolint:bodyclose,noctx // its transport ends with the test
			must(t, err)
		}
		<-ended
		until(b.t, func() bool { return b.handler.Stats().Limited[proxy.LimitWriteTime] == 1 })
	}
}

// speakHTTP2 makes the clients of the proxy speak HTTP/2.
func (b *bundle) speakHTTP2() {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	b.t.Cleanup(transport.CloseIdleConnections)
	b.client = &http.Client{Transport: transport}
}

// A write has its own time, and a stream may pause for longer.
func TestPausesAreNotWrites(t *testing.T) {
	t.Parallel()
	b := setup(t, "write_timeout = '1h'\n"+plain)
	b.handle(func(w http.ResponseWriter, _ *http.Request) {
		for range 2 {
			_, _ = io.WriteString(w, "event\n")
			_ = http.NewResponseController(w).Flush()
		}
	})
	b.url = start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.handler.ServeHTTP(&pausing{ResponseWriter: w}, r) })).URL
	for _, speak := range []func(){func() {}, b.speakHTTP2} {
		speak()
		if got := b.post("/events", ""); string(got.body) != "event\nevent\n" || got.err != nil {
			t.Errorf("got %q, %v", got.body, got.err)
		}
	}
}

// pausing lets any time pass after each write: its deadline, if one is still set, is over
// when the next call comes.
type pausing struct {
	http.ResponseWriter

	wrote, bounded bool
}

func (p *pausing) pass(wrote bool) *http.ResponseController {
	control := http.NewResponseController(p.ResponseWriter)
	if p.wrote && p.bounded {
		_ = control.SetWriteDeadline(time.Unix(1, 0))
	}
	p.wrote = wrote
	return control
}

func (p *pausing) SetWriteDeadline(due time.Time) error {
	if due.IsZero() {
		p.wrote = false
	}
	control := p.pass(false)
	p.bounded = !due.IsZero()
	return control.SetWriteDeadline(due)
}

func (p *pausing) Write(b []byte) (int, error) {
	p.pass(true)
	return p.ResponseWriter.Write(b)
}

func (p *pausing) FlushError() error { return p.pass(true).Flush() }

// Bodies count as they come, until their requests end. Clients that send only the header
// take no room from others.
func TestHeldBodiesAreBounded(t *testing.T) {
	t.Parallel()
	const stalls = 20
	b := setup(t, "max_held_bodies = 1500000\nbody_timeout = '10m'\n"+plain)
	for i := range stalls {
		b.dial("POST /orders HTTP/1.1\r\n" + keyed + []string{"Transfer-Encoding: chunked", "Content-Length: 1048576"}[i%2] + "\r\n\r\n")
	}
	stalled := b.dial("POST /orders HTTP/1.1\r\n" + keyed + "Content-Length: 1048576\r\n\r\n" + strings.Repeat("a", 1<<20-1))
	until(b.t, func() bool { s := b.handler.Stats(); return s.Requests == stalls+1 && s.HeldBodies == 1<<20-1 })
	large := func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("a", 1<<19))), 1<<19
	}
	if got := b.post("/orders", "k2", large); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("one too many got %d %v", got.status, got.header)
	}
	for key, change := range map[string]func(*http.Request){"k3": func(*http.Request) {}, "": large} {
		if got := b.post("/orders", key, change); got.status != http.StatusCreated {
			t.Errorf("the key %q: got %d, want 201", key, got.status)
		}
	}
	if err := b.handler.Full(); err != nil {
		t.Errorf("full with a third left: %v", err)
	}
	if got := b.handler.Stats().Limited[proxy.LimitHeldBodies]; got != 1 {
		t.Errorf("%d requests were refused, want 1", got)
	}
	_ = stalled.Close()
	until(b.t, func() bool { return b.handler.Stats().HeldBodies == 0 })
	if got := b.post("/orders", "k2", large); got.status != http.StatusCreated {
		t.Errorf("after that: got %d, want 201", got.status)
	}
}

func TestFullHandlerSaysWhichBoundItMeets(t *testing.T) {
	t.Parallel()
	b := setup(t, "max_requests = 1\n"+plain)
	entered, held := make(chan struct{}), make(chan struct{})
	b.handle(func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-held })
	if err := b.handler.Full(); err != nil {
		t.Error(err)
	}
	got := make(chan *answer)
	go func() { got <- b.post("/orders", "") }()
	<-entered
	if err := b.handler.Full(); err == nil || !strings.Contains(err.Error(), "max_requests") {
		t.Errorf("full: %v", err)
	}
	if more := b.post("/orders", ""); more.status != http.StatusServiceUnavailable || b.handler.Stats().Limited[proxy.LimitRequests] != 1 {
		t.Errorf("one more got %d, and the numbers are %+v", more.status, b.handler.Stats())
	}
	if !strings.Contains(b.log.String(), "max_requests") {
		t.Errorf("the log has no line about it: %s", b.log)
	}
	close(held)
	<-got
}

// A client that leaves is no failure of the upstream.
func TestClientThatLeavesIs499(t *testing.T) {
	t.Parallel()
	b := setup(t, plain)
	entered := make(chan struct{})
	b.handle(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // after which its server notices that the proxy left
		close(entered)
		<-r.Context().Done()
	})
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-entered; leave() }()
	if got := b.post("/orders", "", func(r *http.Request) { *r = *r.WithContext(ctx) }); !errors.Is(got.err, context.Canceled) {
		t.Fatal(got.err)
	}
	until(b.t, func() bool {
		return strings.Contains(b.access.String(), fmt.Sprintf(`"status":%d`, proxy.StatusClientLeft))
	})
}
