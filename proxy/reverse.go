package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// Forward returns a handler that forwards requests with a reverse proxy of yours, for use
// inside the middleware of net/http, Gin or Echo: a [Handler] has both already. A
// complete response of the upstream is recorded like any other. What happens to a request
// without one depends on whether it was sent:
//
//   - If it was not, because there was no connection to the upstream, the key is released
//     ([protocol.Release]), and the client gets 503. Its retry runs.
//   - Otherwise the upstream may have executed it, and the outcome is unknown
//     ([protocol.Unknown]): the client gets 504 after a timeout, else 502, and its
//     retries get 409 outcome-unknown. The outcome is also unknown if the response breaks
//     off (the client sees it break off), if p.ModifyResponse fails, and if the upstream
//     switches protocols.
//
// A body that ends with its connection, as in HTTP/1.0, may have been cut off without
// notice: its response is recorded without the body ([protocol.OmitBody]).
//
// Without Forward, Recoverable would run such requests again, and AtMostOnce would replay
// the 502 of p.
//
// If p has an ErrorHandler, it writes the response, and may decide otherwise; if not, the
// error is logged to p.ErrorLog. Forward can tell that a request was not sent if
// p.Transport is an [http.Transport] or calls the hooks of package httptrace as that
// does. After an error of any other transport it assumes that the request was sent.
//
// The upstream gets the client's Idempotency-Key. An [http.Transport] repeats a request
// with that field and without a body when a reused connection breaks, and over HTTP/2 one
// that the server reset. Forward prevents both in a run, but not if another RoundTripper
// wraps the [http.Transport], since only the wrapper knows which repetition it wants.
// Unless the upstream honours the key, remove the field in p.Rewrite and do not wrap the
// [http.Transport].
//
// The upstream gets a body that is in memory, as that of every run is, with its length,
// even if the client sent it in chunks, unless it has trailers.
//
// Put an [http.TimeoutHandler] outside the middleware, not between it and Forward: its
// 503 would be the response of the run, recorded before Forward knows the outcome.
//
// Forward panics if p is nil. p must not change afterwards.
func Forward(p *httputil.ReverseProxy) http.Handler {
	if p == nil {
		panic("proxy: Forward needs a reverse proxy")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := &forward{proxy: p, run: r.Context()}
		_, f.keyed = reprise.AttemptFrom(r.Context())
		r = declareLength(r)
		duplex := !f.keyed && readWhileWriting(w, r) // with a key, the body is in memory
		defer f.end()
		own := *p
		own.Transport, own.ErrorHandler = f, f.fail
		returned := false
		defer func() {
			cut := !returned && !protocol.ClientLeft(f.run) || f.broken.Load() || f.status == http.StatusSwitchingProtocols
			if cut && !f.failed && f.sent() {
				f.unknown(nil)
			}
		}()
		own.ServeHTTP(w, r)
		returned = true
		if duplex && f.status != http.StatusSwitchingProtocols {
			// The server would close a body that the upstream left unread, too late to
			// keep the connection: the end of the body starts a read beside that of the
			// next request.
			_ = r.Body.Close()
		}
	})
}

// declareLength returns r with the length of its body, if that is in memory: an upstream
// behind another proxy, or one that takes no chunks, gets a body that a client sent in
// chunks. Trailers need chunks.
func declareLength(r *http.Request) *http.Request {
	body, held := r.Body.(*protocol.Body)
	if !held || r.ContentLength >= 0 || len(r.Trailer) > 0 {
		return r
	}
	sized := *r
	sized.ContentLength, sized.TransferEncoding = int64(len(body.Bytes())), nil
	return &sized
}

// readWhileWriting lets the transport read the body of a request while its response is
// written, and reports whether it does. A server of HTTP/1 otherwise drains and closes
// the body before the response, and a transport that has yet to see its end then closes
// its connection, which cuts the response (go.dev/issue/40747). The server leaves a body
// alone that the client holds back (Expect), HTTP/2 needs no such mode, and a writer that
// hides the server's keeps the default.
func readWhileWriting(w http.ResponseWriter, r *http.Request) bool {
	return r.Header.Get("Expect") == "" && http.NewResponseController(w).EnableFullDuplex() == nil
}

// forward is one request on its way to the upstream, whose RoundTripper it is.
type forward struct {
	proxy *httputil.ReverseProxy
	run   context.Context
	keyed bool // an attempt is running

	begun     bool        // the request was given to the transport
	asked     atomic.Bool // the transport asked for a connection
	connected atomic.Bool // got one
	written   atomic.Bool // and wrote the request to it
	cancel    context.CancelFunc
	status    int         // of the response; 0: there is none
	broken    atomic.Bool // the body of the response
	failed    bool        // the ErrorHandler was called, and has decided
}

var errNoUpstream = errors.New("proxy: the request to forward has no scheme or no host; set them in Rewrite")

// RoundTrip implements [http.RoundTripper].
func (f *forward) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "" || req.URL.Host == "" {
		return nil, errNoUpstream
	}
	base := f.proxy.Transport
	if base == nil {
		base = http.DefaultTransport //nolint:forbidigo // as a ReverseProxy does
	}
	_, plain := base.(*http.Transport)
	ctx, cancel := context.WithCancel(req.Context())
	f.cancel = cancel
	out := req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { f.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) {
			f.connected.Store(true)
			if plain && f.keyed && f.written.Load() {
				cancel() // it would be written again, although it may have been executed
			}
		},
		WroteRequest: func(w httptrace.WroteRequestInfo) {
			if w.Err == nil {
				f.written.Store(true)
			}
		},
	}))
	if plain {
		out.Header = unrepeatable(out.Header)
	}
	f.begun = true
	resp, err := base.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	if resp.Request == out {
		resp.Request = req
	}
	f.status = resp.StatusCode
	if f.keyed && endsWithConnection(resp) {
		protocol.OmitBody(f.run) //nolint:contextcheck // the context of the run, whose decision it is
	}
	if f.status != http.StatusSwitchingProtocols {
		resp.Body = &upstreamBody{resp.Body, &f.broken}
	}
	return resp, nil
}

// endsWithConnection reports whether a body that broke off would look whole.
func endsWithConnection(resp *http.Response) bool {
	return resp.ProtoMajor == 1 && resp.ContentLength < 0 && !resp.Uncompressed && !slices.Contains(resp.TransferEncoding, "chunked")
}

func (f *forward) end() {
	if f.cancel != nil {
		f.cancel()
	}
}

// unrepeatable returns h with other spellings of the two names by which an
// [http.Transport] recognises a request that it may repeat.
func unrepeatable(h http.Header) http.Header {
	h = maps.Clone(h)
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, there := h[name]; there {
			delete(h, name)
			h[strings.ToLower(name)] = values
		}
	}
	return h
}

// upstreamBody notices that a response breaks off: a ReverseProxy panics then, but only
// if an [http.Server] runs it.
type upstreamBody struct {
	io.ReadCloser
	broken *atomic.Bool
}

func (b *upstreamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF { // a wrapped one is a failure, as for a ReverseProxy
		b.broken.Store(true)
	}
	return n, err
}

// sent reports whether the request may have reached the upstream. The transport's error
// does not tell: a transport repeats requests, so the error may be of another connection
// than the one that carried the request.
func (f *forward) sent() bool {
	return f.begun && (f.status != 0 || f.connected.Load() || !f.asked.Load())
}

// fail is the ErrorHandler of the ReverseProxy.
func (f *forward) fail(w http.ResponseWriter, r *http.Request, err error) {
	f.failed = true
	status, text := http.StatusServiceUnavailable, "The upstream could not be reached. The request was not sent."
	switch {
	case !f.sent():
		if f.keyed {
			protocol.Release(f.run)
		}
	case isTimeout(err):
		status, text = http.StatusGatewayTimeout, "The upstream did not respond in time. It may have executed the request."
		f.unknown(err)
	default:
		status, text = http.StatusBadGateway, "The upstream did not respond as expected. It may have executed the request."
		f.unknown(err)
	}
	if f.proxy.ErrorHandler != nil {
		f.proxy.ErrorHandler(w, r, err)
		return
	}
	if f.proxy.ErrorLog != nil {
		f.proxy.ErrorLog.Printf("http: proxy error: %v", err) //nolint:forbidigo // it is the user's
	} else {
		slog.ErrorContext(f.run, "proxy: the upstream gave no response", slog.Any("error", err))
	}
	http.Error(w, text, status)
}

// unknown marks the outcome of a run.
func (f *forward) unknown(err error) {
	if f.keyed {
		protocol.Unknown(f.run, f.reason(err))
	}
}

// reason describes an unknown outcome to operators. It has no part of err, which may have
// a URL in it.
func (f *forward) reason(err error) string {
	switch {
	case f.status == http.StatusSwitchingProtocols:
		return "proxy: the upstream changed protocols"
	case f.status != 0:
		return "proxy: the upstream responded " + strconv.Itoa(f.status) + ", and the response could not be passed on"
	case f.run.Err() != nil:
		return "proxy: the run was cancelled before the upstream responded"
	case isTimeout(err):
		return "proxy: the upstream did not respond in time"
	}
	return "proxy: the connection broke before the upstream responded, or the response was invalid"
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
