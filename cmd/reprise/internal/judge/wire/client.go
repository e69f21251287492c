package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"time"
)

// Limits bound a client. All must be positive.
type Limits struct {
	Requests int           // in total
	Bytes    int64         // sent and received, in total
	Timeout  time.Duration // of one answer
}

// ErrLimit is the error of a client that reached one of its limits.
var ErrLimit = errors.New("limit reached")

// Client opens connections to the service under test. It is safe for concurrent use.
type Client struct {
	Guard  Guard
	TLS    *tls.Config // for https; nil trusts the roots of the machine
	Limits Limits

	requests, bytes atomic.Int64
}

// Used returns how many requests were sent, and how many bytes sent and received.
func (c *Client) Used() (requests, bytes int64) { return c.requests.Load(), c.bytes.Load() }

// DialError says that no connection could be opened.
type DialError struct{ Err error }

func (e *DialError) Error() string { return "connect: " + e.Err.Error() }
func (e *DialError) Unwrap() error { return e.Err }

// Dial opens a connection to the service that a URL names.
func (c *Client) Dial(ctx context.Context, to *url.URL) (*Conn, error) {
	addresses, err := c.Guard.Resolve(ctx, to.Hostname())
	if err != nil {
		return nil, &DialError{err}
	}
	port := to.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[to.Scheme]
	}
	d := net.Dialer{Timeout: c.Limits.Timeout}
	var raw net.Conn
	for _, address := range addresses {
		if raw, err = d.DialContext(ctx, "tcp", net.JoinHostPort(address.String(), port)); err == nil {
			break
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &DialError{err}
	}
	conn := &Conn{client: c, raw: raw}
	conn.stop = context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Now()) })
	var counted net.Conn = countedConn{raw, c}
	if to.Scheme == "https" {
		config := c.TLS.Clone()
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		config.ServerName, config.NextProtos = to.Hostname(), []string{"http/1.1"}
		secure := tls.Client(counted, config)
		_ = raw.SetDeadline(time.Now().Add(c.Limits.Timeout))
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, &DialError{fmt.Errorf("TLS: %w", err)}
		}
		counted = secure
	}
	conn.ctx, conn.stream, conn.in = ctx, counted, bufio.NewReader(counted)
	return conn, nil
}

// countedConn counts the bytes of a connection, and ends it at the client's limit.
type countedConn struct {
	net.Conn
	client *Client
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if used := c.client.bytes.Add(int64(n)); used > c.client.Limits.Bytes {
		return n, fmt.Errorf("%w: %d bytes", ErrLimit, c.client.Limits.Bytes)
	}
	return n, err
}

func (c countedConn) Write(p []byte) (int, error) {
	if used := c.client.bytes.Add(int64(len(p))); used > c.client.Limits.Bytes {
		return 0, fmt.Errorf("%w: %d bytes", ErrLimit, c.client.Limits.Bytes)
	}
	return c.Conn.Write(p)
}
