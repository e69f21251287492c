package repriseclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// Each case meets a real listener, or none.
func TestNotSentIsTrueOnlyWithoutAConnection(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		serve   func(net.Conn) // nil: nothing listens
		prepare func(base *http.Transport, req *http.Request) *http.Request
		notSent bool
	}{
		"a refused connection": {notSent: true},
		"an unknown name": {notSent: true, prepare: func(base *http.Transport, req *http.Request) *http.Request {
			base.DialContext = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Name: "shop.example", IsNotFound: true}}
			}
			return req
		}},
		"a dial whose error has no type": {notSent: true, prepare: func(base *http.Transport, req *http.Request) *http.Request {
			base.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errNetwork }
			return req
		}},
		"a context that ended during the dial": {notSent: true, prepare: func(base *http.Transport, req *http.Request) *http.Request {
			ctx, cancel := context.WithCancel(req.Context())
			base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				cancel()
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return req.WithContext(ctx)
		}},
		"a TLS handshake that breaks off": {serve: hangUp, notSent: true, prepare: func(_ *http.Transport, req *http.Request) *http.Request {
			req.URL.Scheme = "https"
			return req
		}},
		"a TLS handshake that takes too long": {serve: stall, notSent: true, prepare: func(base *http.Transport, req *http.Request) *http.Request {
			req.URL.Scheme, base.TLSHandshakeTimeout = "https", time.Millisecond
			return req
		}},
		"a proxy that refuses to connect": {serve: refuseToConnect, notSent: true, prepare: func(base *http.Transport, req *http.Request) *http.Request {
			base.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: req.URL.Host})
			req.URL.Scheme = "https"
			return req
		}},

		"a connection that breaks at once":        {serve: hangUp},
		"a connection that breaks in the request": {serve: readSome},
		"a response that does not come": {serve: stall, prepare: func(base *http.Transport, req *http.Request) *http.Request {
			base.ResponseHeaderTimeout = time.Millisecond
			return req
		}},
		"a response that looks like a refusal of net/http": {serve: lie},
		"a context that ended during the request": {serve: stall, prepare: func(base *http.Transport, req *http.Request) *http.Request {
			ctx, cancel := context.WithCancel(req.Context())
			base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				return cancelling{conn, cancel}, err
			}
			return req.WithContext(ctx)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
			defer base.CloseIdleConnections()
			req := post(t.Context(), t, strings.NewReader("12 EUR"))
			req.URL.Host = listen(t, test.serve)
			if test.prepare != nil {
				req = test.prepare(base, req)
			}
			client := &http.Client{Transport: newTransport(t, base, Config{MaxAttempts: 1})}
			resp, err := client.Do(req)
			if err == nil {
				_ = resp.Body.Close()
				t.Fatalf("answered with %d", resp.StatusCode)
			}
			if got := NotSent(err); got != test.notSent {
				t.Errorf("NotSent is %v for %v", got, err)
			}
		})
	}
}

// A response shows that a request was sent, whatever the base transport traced.
func TestNotSentIsFalseOnceThereWasAResponse(t *testing.T) {
	t.Parallel()
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		httptrace.ContextClientTrace(r.Context()).GetConn(r.URL.Host) // and no GotConn
		return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(iotest.ErrReader(errNetwork)), ContentLength: 4}, nil
	})
	req := post(t.Context(), t, strings.NewReader("12 EUR"))
	resp, err := newTransport(t, base, Config{MaxAttempts: 1}).RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
		t.Fatalf("answered with %d", resp.StatusCode)
	}
	if NotSent(err) {
		t.Errorf("NotSent is true for %v", err)
	}
}

func TestNotSentIsFalseForErrorsOfOthers(t *testing.T) {
	t.Parallel()
	not := &NotSentError{Err: errNetwork}
	for _, err := range []error{
		nil, errNetwork, &net.OpError{Op: "dial", Err: errNetwork}, context.Canceled, &UnknownOutcomeError{Err: not},
		errors.Join(not, &UnknownOutcomeError{Err: errNetwork}),
	} {
		if NotSent(err) {
			t.Errorf("NotSent is true for %v", err)
		}
	}
	if !NotSent(fmt.Errorf("pay: %w", &url.Error{Op: "Post", Err: not})) {
		t.Error("NotSent is false for a wrapped NotSentError")
	}
}

// listen returns the address of a listener that serves each connection until the test
// ends, or of one that was closed.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if serve == nil {
		_ = listener.Close()
		return listener.Addr().String()
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

func hangUp(net.Conn) {}

// stall reads until the client closes the connection.
func stall(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

func readSome(conn net.Conn) { _, _ = conn.Read(make([]byte, 16)) }

func refuseToConnect(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 4096))
	_, _ = io.WriteString(conn, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
}

// lie responds with an error text of net/http, which its error then contains.
func lie(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 4096))
	_, _ = io.WriteString(conn, "net/http: invalid unsupported protocol scheme\r\n\r\n")
}

// cancelling ends the call when the first bytes of the request are written.
type cancelling struct {
	net.Conn
	cancel context.CancelFunc
}

func (c cancelling) Write(p []byte) (int, error) {
	defer c.cancel()
	return c.Conn.Write(p)
}
