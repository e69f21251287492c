package repriseclient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
)

// The classes of errors.
const (
	notSent  = "not sent"
	unknown  = "unknown"
	answered = "answered" // with a redirect that could not be followed
)

func classOf(err error) string {
	var not *NotSentError
	var open *UnknownOutcomeError
	var redirect *RedirectError
	switch {
	case errors.As(err, &not):
		return notSent
	case errors.As(err, &open):
		return unknown
	case errors.As(err, &redirect):
		return answered
	}
	return "none of them"
}

// Each stage of a request fails in all of its ways, or hangs until the caller's deadline
// passes or the caller cancels. The error's statement about the operation depends on the
// stage only: until there is a connection, no handler can have run.
func TestEveryStageOfARequestHasItsClass(t *testing.T) {
	t.Parallel()
	for _, stage := range []struct {
		name   string
		faults []string // besides hanging
		set    func(*way)
		want   string
	}{
		{"resolve", []string{"no such name"}, resolving, notSent},
		{"dial", []string{"refused", "an error without a type"}, dialling, notSent},
		{"proxy CONNECT", []string{"no proxy", "403", "502", "closed"}, tunnelling, notSent},
		{"TLS", []string{"wrong certificate", "no TLS", "closed", "handshake timeout"}, securing, notSent},
		{"write headers", []string{"closed"}, upTo(writeHeaders), unknown},
		{"write body", []string{"closed"}, upTo(writeBody), unknown},
		{"wait", []string{"closed", "header timeout"}, upTo(wait), unknown},
		{"read header", []string{"closed", "a refusal of net/http"}, upTo(readHeader), unknown},
		{"read body", []string{"closed"}, upTo(readBody), unknown},
		{"redirect 303, dial", []string{"refused"}, redirected(http.StatusSeeOther, dialling), answered},
		{"redirect 303, wait", []string{"closed"}, redirected(http.StatusSeeOther, upTo(wait)), answered},
		{"redirect 303, read body", []string{"closed"}, redirected(http.StatusSeeOther, upTo(readBody)), answered},
		{"redirect 307, dial", []string{"refused"}, redirected(http.StatusTemporaryRedirect, dialling), notSent},
		{"redirect 307, wait", []string{"closed"}, redirected(http.StatusTemporaryRedirect, upTo(wait)), unknown},
	} {
		for _, fault := range append([]string{"deadline", "cancel"}, stage.faults...) {
			t.Run(stage.name+"/"+fault, func(t *testing.T) {
				t.Parallel()
				w := &way{T: t, fault: fault, reached: make(chan struct{}, 16), base: &http.Transport{}, body: "an order"}
				t.Cleanup(w.base.CloseIdleConnections)
				stage.set(w)
				err := w.send()
				if got := classOf(err); got != stage.want || NotSent(err) != (got == notSent) {
					t.Errorf("%q is classed %s, want %s; NotSent is %v", err, got, stage.want, NotSent(err))
				}
				ended := map[string]error{"deadline": context.DeadlineExceeded, "cancel": context.Canceled}[fault]
				if !errors.Is(err, ended) && ended != nil {
					t.Errorf("%v does not wrap %v", err, ended)
				}
			})
		}
	}
}

// way is what a request meets.
type way struct {
	*testing.T

	fault   string        // "deadline" and "cancel" hang
	reached chan struct{} // gets a value when the stage is reached
	url     string
	base    *http.Transport
	header  string
	body    string
}

func (w *way) hangs() bool { return w.fault == "deadline" || w.fault == "cancel" }

// hang says that the stage is reached and waits for the end of the test.
func (w *way) hang() {
	w.reached <- struct{}{}
	<-w.Context().Done()
}

// send makes one attempt, whose context ends when the stage is reached.
func (w *way) send() error {
	ctx, cancel := context.WithCancelCause(w.Context())
	defer cancel(nil)
	if w.fault == "deadline" {
		ctx = expiring{ctx}
	}
	req := post(ctx, w.T, strings.NewReader(w.body))
	u, err := url.Parse(w.url)
	must(w, err)
	req.URL, req.Host = u, ""
	if w.header != "" {
		req.Header.Set("X-Long", w.header)
	}
	if w.hangs() {
		go func() {
			<-w.reached
			cancel(map[string]error{"deadline": context.DeadlineExceeded}[w.fault])
		}()
	}
	client := &http.Client{Transport: newTransport(w.T, w.base, Config{MaxAttempts: 1})}
	resp, err := client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body) // of a response to a request without a key
	}
	if err == nil {
		w.Fatalf("answered with %d", resp.StatusCode)
	}
	return err
}

// expiring is a context that ends by its deadline, whenever that is.
type expiring struct{ context.Context }

func (e expiring) Err() error {
	if e.Context.Err() == nil {
		return nil
	}
	return context.Cause(e.Context)
}

// serve serves connections until the end of the test.
func (w *way) serve(each func(net.Conn)) (address string) {
	w.Helper()
	listener, err := new(net.ListenConfig).Listen(w.Context(), "tcp", "127.0.0.1:0")
	must(w, err)
	w.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = conn.(*net.TCPConn).SetReadBuffer(1 << 10)
				each(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// resolving has a server of names that knows none.
func resolving(w *way) {
	server, err := new(net.ListenConfig).ListenPacket(w.Context(), "udp", "127.0.0.1:0")
	must(w, err)
	w.Cleanup(func() { _ = server.Close() })
	go func() {
		query := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			if w.hangs() {
				w.reached <- struct{}{}
				continue
			}
			query[2], query[3] = query[2]|0x80, query[3]&0xf0|3 // an answer: no such name
			_, _ = server.WriteTo(query[:n], from)
		}
	}()
	w.base.DialContext = (&net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}}).DialContext
	w.url = "http://shop.test/"
}

// dialling has an address where no server listens, and dials that do not end.
func dialling(w *way) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	w.url = server.URL
	switch {
	case w.hangs():
		w.base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			w.reached <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
	case w.fault == "an error without a type":
		w.base.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errNetwork }
	}
}

func tunnelling(w *way) {
	w.url = "https://shop.test/"
	proxy := w.serve(func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		switch w.fault {
		case "403", "502":
			_, _ = io.WriteString(conn, "HTTP/1.1 "+w.fault+" No\r\nContent-Length: 0\r\n\r\n")
		case "closed":
		default:
			w.hang()
		}
	})
	if w.fault == "no proxy" {
		gone := httptest.NewServer(http.NotFoundHandler())
		gone.Close()
		proxy = strings.TrimPrefix(gone.URL, "http://")
	}
	w.base.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: proxy})
}

func securing(w *way) {
	if w.fault == "wrong certificate" {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = quiet
		server.StartTLS()
		w.Cleanup(server.Close)
		w.url = server.URL
		return
	}
	if w.fault == "handshake timeout" {
		w.base.TLSHandshakeTimeout = 20 * time.Millisecond
	}
	w.url = "https://" + w.serve(func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1<<10))
		switch w.fault {
		case "no TLS":
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
		case "closed":
		default:
			w.hang()
		}
	})
}

// The stages that a server sees.
const (
	writeHeaders = iota
	writeBody
	wait
	readHeader
	readBody
)

// upTo has a server that breaks off, or hangs, in a stage.
func upTo(stage int) func(*way) {
	return func(w *way) {
		w.url = "http://" + w.serve(func(conn net.Conn) { w.exchange(conn, stage) })
		w.base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err == nil {
				err = conn.(*net.TCPConn).SetWriteBuffer(1 << 10)
			}
			return conn, err
		}
		const more = 1 << 20 // than the buffers of this connection hold
		switch stage {
		case writeHeaders:
			w.header = strings.Repeat("x", more)
		case writeBody:
			w.body = strings.Repeat("x", more)
		}
		if w.fault == "header timeout" {
			w.base.ResponseHeaderTimeout = 20 * time.Millisecond
		}
	}
}

func (w *way) exchange(conn net.Conn, stage int) {
	if stage == writeHeaders {
		_, _ = conn.Read(make([]byte, 1))
	} else {
		req, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		if stage > writeBody {
			_, _ = io.Copy(io.Discard, req.Body)
		}
	}
	switch stage {
	case readHeader:
		text := "HTTP/1.1 201 Created\r\nContent-"
		if w.fault == "a refusal of net/http" { // a text that its error then contains
			text = "net/http: invalid unsupported protocol scheme\r\n\r\n"
		}
		_, _ = io.WriteString(conn, text)
	case readBody:
		_, _ = io.WriteString(conn, "HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\nhello")
	}
	if w.hangs() || w.fault == "header timeout" {
		w.hang()
	}
}

// quiet is the log of servers whose connections break.
var quiet = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)

// redirected has a server that redirects to what comes next.
func redirected(status int, next func(*way)) func(*way) {
	return func(w *way) {
		next(w)
		to, dial := w.url, w.base.DialContext
		first := httptest.NewServer(http.RedirectHandler(to, status))
		w.Cleanup(first.Close)
		w.url = first.URL
		w.base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if dial == nil || "http://"+address == first.URL {
				return new(net.Dialer).DialContext(ctx, network, address)
			}
			return dial(ctx, network, address)
		}
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

// net/http silently repeats a request with an Idempotency-Key when a reused connection
// breaks, and returns only the error of the last connection. A service that runs an
// operation and then dies must not be reported as never reached.
func TestARequestThatNetHTTPRepeatedMayHaveRun(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if runs.Add(1) == 1 {
			return // the connection stays open
		}
		_ = server.Listener.Close() // the service dies after its operation
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	}))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	transport := newTransport(t, base, Config{MaxAttempts: 1})
	send := func() (*http.Response, error) {
		req := post(t.Context(), t, strings.NewReader("a"))
		req.URL.Host = server.Listener.Addr().String()
		return transport.RoundTrip(req)
	}
	first, err := send()
	must(t, err)
	_ = first.Body.Close()

	_, err = send()
	var dial *net.OpError
	if !errors.As(err, &dial) || dial.Op != "dial" || runs.Load() != 2 {
		t.Fatalf("%d runs, and the error %v, want 2 and the error of a second connection", runs.Load(), err)
	}
	var unknown *UnknownOutcomeError
	if !errors.As(err, &unknown) {
		t.Errorf("error %v, want an UnknownOutcomeError: the operation ran", err)
	}
}
