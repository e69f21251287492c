package draws

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// answer is a response as it came over the wire.
type answer struct {
	status  int
	informs []string            // 1xx, with their fields
	fields  map[string][]string // by canonical name, in the order of their lines
	body    string
	framing string // "length", "chunked", "close", "none", or "stream" of HTTP/2
	trailer map[string][]string
	extra   string // bytes behind the response
	broken  bool   // it did not come to its end
}

// patience is how long a response may take.
const patience = time.Minute

// client sends requests to the hosts of a framework. It is not safe for concurrent use.
type client struct {
	conns map[string]*conn // those that are kept alive, by address
}

type conn struct {
	net.Conn

	in *bufio.Reader
}

// request is what a client sends: a POST with a body of four bytes.
type request struct {
	proto  string
	alone  bool // its connection is not used again: bytes may follow the response
	fields [][2]string
}

const requestBody = "body"

// send sends a request to a host. ran returns how often handlers ran: a connection that
// the server had closed in the meantime reached none, and the request is sent again.
func (c *client) send(h *Host, q request, ran func() int64) (answer, error) {
	if h.Do != nil || q.proto == "2" {
		return c.roundTrip(h, q)
	}
	kept, before := c.conns[h.Addr], ran()
	a, err := c.raw(h.Addr, q)
	if err == nil && kept != nil && a.broken && a.status == 0 && ran() == before {
		return c.raw(h.Addr, q)
	}
	return a, err
}

// raw sends a request over a connection of its own or one that is kept alive.
func (c *client) raw(addr string, q request) (a answer, err error) {
	k := c.conns[addr]
	if k == nil {
		n, err := net.Dial("tcp", addr) //nolint:noctx // it has a deadline
		if err != nil {
			return a, err
		}
		k = &conn{n, bufio.NewReaderSize(n, 16<<10)}
	}
	delete(c.conns, addr)
	_ = k.SetDeadline(time.Now().Add(patience))
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST /draw HTTP/%s\r\nHost: draws\r\nContent-Length: %d\r\n", q.proto, len(requestBody))
	for _, f := range q.fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
	}
	b.WriteString("\r\n" + requestBody)
	if _, err := k.Write(b.Bytes()); err == nil {
		err = a.read(k.in)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			_ = k.Close()
			return a, fmt.Errorf("no response in time: %w", err)
		}
		a.broken = err != nil
	} else {
		a.broken = true
	}
	if n := k.in.Buffered(); n > 0 {
		rest, _ := k.in.Peek(n)
		a.extra = string(rest)
	}
	if a.broken || a.extra != "" || a.framing == "close" || q.alone || q.proto == "1.0" || slices.Contains(a.fields["Connection"], "close") {
		_ = k.Close()
	} else {
		c.conns[addr] = k
	}
	return a, nil
}

// close closes the connections.
func (c *client) close() {
	for _, k := range c.conns {
		_ = k.Close()
	}
}

// read reads a response to its end.
func (a *answer) read(in *bufio.Reader) error {
	for {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		if res.StatusCode < 200 && res.StatusCode != http.StatusSwitchingProtocols {
			a.informs = append(a.informs, inform(res.StatusCode, res.Header))
			continue
		}
		for name := range res.Trailer { // which net/http takes out of the fields
			res.Header.Add("Trailer", name)
		}
		slices.Sort(res.Header["Trailer"])
		return a.take(res, "close")
	}
}

// take reads the body of a response, whose framing is otherwise one that it does not
// declare.
func (a *answer) take(res *http.Response, otherwise string) error {
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	a.status, a.fields, a.trailer, a.body, a.broken = res.StatusCode, res.Header, res.Trailer, string(body), err != nil
	switch {
	case len(res.TransferEncoding) > 0:
		a.framing = "chunked"
	case res.StatusCode == http.StatusNoContent, res.StatusCode == http.StatusNotModified:
		a.framing = "none"
	case len(res.Header["Content-Length"]) > 0:
		a.framing = "length"
	default:
		a.framing = otherwise
	}
	return err
}

func inform(status int, fields map[string][]string) string {
	return fmt.Sprintf("%d %v", status, without(fields, "Date"))
}

var http2 = func() *http.Transport {
	t := &http.Transport{DisableCompression: true, Protocols: new(http.Protocols)}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}()

// roundTrip sends a request over HTTP/2, or in the way of the host.
func (c *client) roundTrip(h *Host, q request) (a answer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(code int, fields textproto.MIMEHeader) error {
		a.informs = append(a.informs, inform(code, fields))
		return nil
	}})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+h.Addr+"/draw", strings.NewReader(requestBody))
	if err != nil {
		return a, err
	}
	r.GetBody = nil // no silent repetition
	for _, f := range q.fields {
		r.Header.Add(f[0], f[1])
	}
	do := h.Do
	if do == nil {
		r.Host = "draws"
		do = http2.RoundTrip
	}
	res, err := do(r)
	if err != nil {
		if ctx.Err() != nil {
			return a, err
		}
		a.broken = true
		return a, nil
	}
	_ = a.take(res, "stream")
	return a, ctx.Err()
}

// plain returns the body, decoded as often as it was compressed: a second layer says so
// in the field of the first.
func (a *answer) plain() string {
	body := a.body
	for strings.HasPrefix(body, "\x1f\x8b") {
		r, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			return body
		}
		decoded, err := io.ReadAll(r)
		if err != nil && !a.broken {
			return fmt.Sprintf("%q, %v", decoded, err)
		}
		body = string(decoded)
	}
	return body
}
