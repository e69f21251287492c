package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// Conn is one connection to the service under test.
type Conn struct {
	client *Client
	ctx    context.Context //nolint:containedctx // of the case that opened the connection
	raw    net.Conn
	stream net.Conn
	in     *bufio.Reader
	stop   func() bool
}

// Close closes the connection.
func (c *Conn) Close() {
	c.stop()
	_ = c.raw.Close()
}

// Reset closes the connection with a reset, so that the server notices at once.
func (c *Conn) Reset() {
	if tcp, ok := c.raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}

// CloseWrite ends the direction to the server.
func (c *Conn) CloseWrite() {
	if half, ok := c.stream.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	if tcp, ok := c.raw.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}

// Begin counts a request against the limit of the client and sends its first bytes.
func (c *Conn) Begin(bytes string) error {
	if n := c.client.requests.Add(1); n > int64(c.client.Limits.Requests) {
		return fmt.Errorf("%w: %d requests", ErrLimit, c.client.Limits.Requests)
	}
	return c.Write(bytes)
}

// Write sends bytes. A server that answered and closed before it read them all is no
// error: the answer tells.
func (c *Conn) Write(bytes string) error {
	_ = c.stream.SetWriteDeadline(time.Now().Add(c.client.Limits.Timeout))
	_, err := io.WriteString(c.stream, bytes)
	if err == nil || Closed(err) {
		return nil
	}
	return c.explain("send", err)
}

// Answer is a final response that came whole.
type Answer struct {
	Status  int
	Header  http.Header
	Body    string
	Trailer http.Header
	Close   bool // the server announced the end of the connection
	At      time.Time
	Took    time.Duration // since the read began
}

// Values returns the values of a field in their order.
func (a *Answer) Values(name string) []string { return a.Header.Values(name) }

// OK reports a 2xx status.
func (a *Answer) OK() bool { return a.Status/100 == 2 }

func (a *Answer) String() string {
	body := a.Body
	const most = 80
	if len(body) > most {
		body = fmt.Sprintf("%s… (%d bytes)", body[:most], len(a.Body))
	}
	return fmt.Sprintf("%d %s", a.Status, strings.ToValidUTF8(body, "?"))
}

// Read reads the answer to a request of the method. The errors are of a connection that
// ended before a whole answer came ([Closed]), of a malformed one, and of a time-out.
func (c *Conn) Read(method string) (*Answer, error) {
	began := time.Now()
	_ = c.stream.SetReadDeadline(began.Add(c.client.Limits.Timeout))
	for {
		r, err := http.ReadResponse(c.in, &http.Request{Method: method})
		if err != nil {
			return nil, c.explain("read the answer", err)
		}
		if r.StatusCode/100 == 1 && r.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return nil, c.explain(fmt.Sprintf("read the body of a %d answer, %d bytes of which came", r.StatusCode, len(body)), err)
		}
		now := time.Now()
		return &Answer{r.StatusCode, r.Header, string(body), r.Trailer, r.Close, now, now.Sub(began)}, nil
	}
}

// Ask sends a call and reads its answer.
func (c *Conn) Ask(call Call) (*Answer, error) {
	if err := c.Begin(call.Bytes()); err != nil {
		return nil, err
	}
	return c.Read(call.Method)
}

// Await waits for the first byte of an answer. The errors are those of Read.
func (c *Conn) Await(most time.Duration) error {
	_ = c.stream.SetReadDeadline(time.Now().Add(most))
	if _, err := c.in.Peek(1); err != nil {
		return c.explain("wait for an answer", err)
	}
	return nil
}

// Continue reads one interim or final status line and its fields, without a body.
func (c *Conn) Continue() (int, error) {
	_ = c.stream.SetReadDeadline(time.Now().Add(c.client.Limits.Timeout))
	r, err := http.ReadResponse(c.in, &http.Request{Method: http.MethodHead})
	if err != nil {
		return 0, c.explain("read an interim answer", err)
	}
	return r.StatusCode, r.Body.Close()
}

// explain prefers the reason why the context of the case ended.
func (c *Conn) explain(doing string, err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		return cause
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%s: none within the time-out: %w", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Closed reports whether err says that the server ended the connection.
func Closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}
