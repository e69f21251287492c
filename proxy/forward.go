package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

const (
	idleConnections   = 256              // to the upstream
	idleTimeout       = 4 * time.Second  // less than that of Node, whose default of 5 s is among the shortest
	pingAfter         = 10 * time.Second // of silence on an HTTP/2 connection
	maxResponseHeader = 1 << 20

	forwardedHost = "X-Forwarded-Host"
)

// newTransport returns the transport to the upstream. It ignores HTTP_PROXY and the like,
// and does not decode bodies, because a replay must have the same bytes.
func newTransport(c *Config) *http.Transport {
	var protocols http.Protocols
	switch c.Upstream.url.Scheme {
	case "https":
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(true)
	case "h2c":
		protocols.SetUnencryptedHTTP2(true)
	default:
		protocols.SetHTTP1(true)
	}
	dialer := &net.Dialer{Timeout: time.Duration(c.ConnectTimeout)}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &writer{conn, time.Duration(c.ResponseTimeout)}, nil
	}
	return &http.Transport{
		Protocols:              &protocols,
		DialContext:            dial,
		TLSHandshakeTimeout:    time.Duration(c.ConnectTimeout),
		ResponseHeaderTimeout:  time.Duration(c.ResponseTimeout),
		ExpectContinueTimeout:  time.Second,
		MaxIdleConns:           idleConnections,
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
		DisableCompression:     true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter},
	}
}

// writer is a connection that bounds each write, because an upstream may stop reading.
type writer struct {
	net.Conn

	timeout time.Duration
}

func (w *writer) Write(p []byte) (int, error) {
	_ = w.SetWriteDeadline(time.Now().Add(w.timeout))
	return w.Conn.Write(p)
}

// bufferPool has the buffers of bodies, of which a reverse proxy otherwise makes one for
// each response: most of what a request without a key takes.
type bufferPool struct{ pool sync.Pool }

var buffers = &bufferPool{sync.Pool{New: func() any { return new([32 << 10]byte) }}}

// Get implements [httputil.BufferPool].
func (b *bufferPool) Get() []byte { return b.pool.Get().(*[32 << 10]byte)[:] }

// Put implements [httputil.BufferPool].
func (b *bufferPool) Put(p []byte) { b.pool.Put((*[32 << 10]byte)(p)) }

// newForward returns the handler that forwards requests to the upstream. A policy that is
// aware of the upstream's replays names the field that marks them.
func newForward(c *Config, transport http.RoundTripper, aware string, log *slog.Logger) http.Handler {
	target := *c.Upstream.url
	if target.Scheme == "h2c" {
		target.Scheme = "http"
	}
	p := &httputil.ReverseProxy{
		Transport:  transport,
		BufferPool: buffers,
		Rewrite:    func(r *httputil.ProxyRequest) { rewrite(r, &target, c.Trusted) },
		ErrorLog:   slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	if aware == "" {
		return Forward(p)
	}
	p.ModifyResponse = func(resp *http.Response) error {
		ctx := resp.Request.Context()
		marked := resp.Header.Get(aware) == "true"
		if !marked && !leavesToRetry(resp.StatusCode) {
			return nil
		}
		if _, keyed := reprise.AttemptFrom(ctx); keyed && protocol.Release(ctx) {
			out := responseOf(ctx)
			if out.released = true; marked {
				out.replayed = aware
			}
		}
		return nil
	}
	forward := Forward(p)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		defer func() {
			if responseOf(ctx).released { // even if the body broke off, after which Forward decides again
				protocol.Release(ctx)
			}
		}()
		forward.ServeHTTP(w, r)
	})
}

// leavesToRetry reports whether a response with this status is not recorded if the
// upstream guards the key itself. It is a refusal, or a failure that the upstream replays
// if it has recorded it. A balancer may also have answered 5xx while the upstream runs
// the request. In each case the record of the upstream decides about the retry.
func leavesToRetry(status int) bool { return status == http.StatusConflict || status >= 500 }

// rewrite addresses a request to the upstream and tells it about the client.
func rewrite(r *httputil.ProxyRequest, target *url.URL, trusted []Prefix) {
	r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
	r.Out.Host = r.In.Host
	// A query that Go cannot parse reaches the upstream as it is: the fingerprint has its
	// bytes.
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	// A tunnel to another protocol, such as h2c, would bypass the proxy.
	if upgrade := r.Out.Header.Get("Upgrade"); upgrade != "" && (r.Out.Method != http.MethodGet || !strings.EqualFold(upgrade, "websocket")) {
		r.Out.Header.Del("Upgrade")
		r.Out.Header.Del("Connection")
	}
	if _, keyed := reprise.AttemptFrom(r.In.Context()); keyed {
		r.Out.Header.Del("Expect") // the proxy has the body already, so the upstream need not ask for it
	}
	keep := isTrusted(r.In.RemoteAddr, trusted)
	for name := range r.Out.Header {
		if ofHop(name) && (!keep || strings.ContainsAny(name, otherSigns)) {
			delete(r.Out.Header, name)
		}
	}
	if keep {
		r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	}
	r.SetXForwarded()
	if !keep {
		return
	}
	for _, name := range []string{forwardedHost, "X-Forwarded-Proto"} {
		if values, there := r.In.Header[name]; there {
			r.Out.Header[name] = values
		}
	}
}

// hops are fields by which a proxy tells of the client, or of the request that it got. A
// service may take the path from one of them.
var hops = []string{"X-Real-IP", "X-Original-URL", "X-Rewrite-URL", "Forwarded"}

const (
	forwardedPrefix = "X-Forwarded-"
	otherSigns      = "_.!#$%&'*+^`|~" // of names, that CGI takes for "-"
)

func ofHop(name string) bool {
	return len(name) > len(forwardedPrefix) && folds(name[:len(forwardedPrefix)], forwardedPrefix) ||
		slices.ContainsFunc(hops, func(hop string) bool { return folds(name, hop) })
}

func isTrusted(peer string, trusted []Prefix) bool {
	if len(trusted) == 0 {
		return false
	}
	address, err := netip.ParseAddrPort(peer)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(trusted, func(p Prefix) bool { return netip.Prefix(p).Contains(address.Addr().Unmap()) })
}
