package labhttp_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/proxy"
)

// net/http sends a request without a body again over HTTP/2 where the server reset its
// stream with PROTOCOL_ERROR, which does not say that the request was not executed.
func TestProxyAsksTheUpstreamOnceThoughItResetsTheStream(t *testing.T) {
	t.Parallel()
	for name, gateway := range map[string]func(*testing.T, *url.URL) http.Handler{"Proxy": resetGateway, "the program": resetProgram} {
		for _, code := range []http2.ErrCode{http2.ErrCodeProtocol, http2.ErrCodeRefusedStream, http2.ErrCodeInternal} {
			t.Run(name+" "+code.String(), func(t *testing.T) {
				t.Parallel()
				var payments atomic.Int64
				front := httptest.NewServer(gateway(t, resetting(t, func() { payments.Add(1) }, code)))
				t.Cleanup(front.Close)
				for _, want := range []int{http.StatusBadGateway, http.StatusConflict} {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL, nil)
					labtest.Must(t, err)
					r.Header.Set("Idempotency-Key", "k")
					got, err := front.Client().Do(r)
					labtest.Must(t, err)
					_ = got.Body.Close()
					if got.StatusCode != want {
						t.Errorf("got %d, want %d", got.StatusCode, want)
					}
				}
				if n := payments.Load(); n != 1 {
					t.Errorf("the bank got %d payments, want 1", n)
				}
			})
		}
	}
}

// resetGateway is a guarded [reprisehttp.Proxy].
func resetGateway(t *testing.T, target *url.URL) http.Handler {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	guard, err := protocol.New(memstore.New(), protocol.Config{Preset: reprise.AtMostOnce})
	labtest.Must(t, err)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = guard.Close(context.WithoutCancel(t.Context()))
	})
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport}
	return reprisehttp.Middleware(guard, reprisehttp.Unscoped)(reprisehttp.Proxy(forward))
}

// resetProgram is the handler of "reprise proxy".
func resetProgram(t *testing.T, target *url.URL) http.Handler {
	t.Helper()
	config, err := proxy.Parse([]byte("upstream = 'h2c://" + target.Host + "'\nscope = 'unscoped'\n"))
	labtest.Must(t, err)
	handler, err := proxy.New(memstore.New(), config, proxy.Options{Engine: reprise.Config{MaxRun: -1}})
	labtest.Must(t, err)
	t.Cleanup(func() { _ = handler.Close(context.WithoutCancel(t.Context())) })
	return handler
}

// resetting is an upstream of HTTP/2 that executes each request, and resets its stream.
// It answers the fourth request, so that a test of it ends.
func resetting(t *testing.T, execute func(), code http2.ErrCode) *url.URL {
	t.Helper()
	var requests atomic.Int64
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it returns at once
	labtest.Must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
					return
				}
				f := http2.NewFramer(conn, conn)
				f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
				_ = f.WriteSettings()
				for {
					frame, err := f.ReadFrame()
					if err != nil {
						return
					}
					switch frame := frame.(type) {
					case *http2.SettingsFrame:
						if !frame.IsAck() {
							_ = f.WriteSettingsAck()
						}
					case *http2.MetaHeadersFrame:
						execute()
						if requests.Add(1) < 4 {
							_ = f.WriteRSTStream(frame.StreamID, code)
						} else {
							_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: frame.StreamID, BlockFragment: []byte{0x88}, EndStream: true, EndHeaders: true}) // :status 200
						}
					}
				}
			}()
		}
	}()
	return &url.URL{Scheme: "http", Host: listener.Addr().String()}
}
