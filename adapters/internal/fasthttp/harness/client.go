package harness

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
)

// Head is the header section of a POST to /x with these lines.
func Head(lines ...string) string {
	return "POST /x HTTP/1.1\r\nHost: test\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// Request is a POST to /x with a body and these lines.
func Request(body string, lines ...string) string {
	return Head(append(lines, fmt.Sprintf("Content-Length: %d", len(body)))...) + body
}

// Key is the line of a key.
func Key(name string) string { return "Idempotency-Key: " + name }

// A Conn is a connection of a client.
type Conn struct {
	*net.TCPConn

	R  *bufio.Reader
	tb testing.TB
}

// Dial connects to the app and sends bytes.
func (s *Service) Dial(bytes string) *Conn {
	s.tb.Helper()
	conn, err := new(net.Dialer).DialContext(s.tb.Context(), "tcp", s.addr)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(Patience))
	c := &Conn{conn.(*net.TCPConn), bufio.NewReader(conn), s.tb}
	c.Send(bytes)
	return c
}

// Send sends bytes.
func (c *Conn) Send(bytes string) {
	c.tb.Helper()
	if _, err := io.WriteString(c, bytes); err != nil {
		c.tb.Fatal(err)
	}
}

// Leave resets the connection, so that the server notices at once.
func (c *Conn) Leave() {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// An Answer is a response that was read to its end.
type Answer struct {
	Status   int
	Header   http.Header
	Body     string
	Closes   bool // the connection ends with it
	Replayed bool
	Err      error // no response came, or not all of it
}

// Receive reads a response.
func (c *Conn) Receive() Answer {
	resp, err := http.ReadResponse(c.R, nil)
	if err != nil {
		return Answer{Err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, string(body), resp.Close, resp.Header.Get(protocol.FieldReplayed) == "true", err}
}

// Want fails the test unless the answer has a status, and a problem's code.
func (a Answer) Want(tb testing.TB, status int, code protocol.Code) {
	tb.Helper()
	if a.Status != status || !strings.Contains(a.Body, fmt.Sprintf(`"code":%q`, code)) {
		tb.Errorf("got %d %.300s, %v, want %d %s", a.Status, a.Body, a.Err, status, code)
	}
}

// Do sends a request on a connection of its own.
func (s *Service) Do(request string) Answer {
	s.tb.Helper()
	c := s.Dial(request)
	defer c.Close()
	return c.Receive()
}

// Post sends a request with a key and these lines on a connection of its own.
func (s *Service) Post(key string, lines ...string) Answer {
	s.tb.Helper()
	return s.Do(Request("body", append(lines, Key(key))...))
}

// Retry is Post, again until the first request has ended.
func (s *Service) Retry(key string) Answer {
	s.tb.Helper()
	for expired := time.Now().Add(Patience); ; {
		runtime.GC() // which ends forgotten streams
		if a := s.Post(key); !strings.Contains(a.Body, string(protocol.CodeInProgress)) || time.Now().After(expired) {
			return a
		}
	}
}

// Twice sends a request and its retry, and fails the test unless the second response is
// the first, marked.
func (s *Service) Twice(request string) (first Answer) {
	s.tb.Helper()
	first, again := s.Do(request), s.Do(request)
	if first.Replayed || !again.Replayed || first.Status != again.Status || first.Body != again.Body || first.Err != nil || again.Err != nil ||
		first.Header.Get("Content-Type") != again.Header.Get("Content-Type") {
		s.tb.Errorf("first %+.200v, and then %+.200v, want its replay", first, again)
	}
	return first
}

var races bool // the race detector watches

// SkipRaces skips a test whose handler outlives a timeout of Fiber, which writes the
// response beside it.
func SkipRaces(t *testing.T) {
	t.Helper()
	if races {
		t.Skip("Fiber's timeout races with any handler that outlives it")
	}
}
