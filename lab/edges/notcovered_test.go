package edges_test

import (
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc"

	reprisegrpc "github.com/reprise-go/reprise/adapters/grpc"
	"github.com/reprise-go/reprise/core/protocol"
)

// startProxy starts a proxy of HTTP/1.1 and HTTP/2 that changes responses.
func startProxy(t *testing.T, addr string, change func(*http.Response)) string {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	proxy.Transport = transport
	proxy.ModifyResponse = func(res *http.Response) error { change(res); return nil }
	return serveHTTP(t, proxy)
}

func stripTrailer(res *http.Response) { res.Body = &withoutTrailer{res.Body, res} }

// withoutTrailer is a body behind which no trailer comes.
type withoutTrailer struct {
	io.ReadCloser
	of *http.Response
}

func (b *withoutTrailer) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.of.Trailer = nil
	}
	return n, err
}

// Behind a proxy that strips trailers no result of gRPC arrives, not even a replay, and
// the operation runs once. Connect and gRPC-Web have no trailers.
func TestProxyThatStripsTrailers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dial  func(*testing.T, string) client
		works bool
	}{
		"grpc-go": {func(t *testing.T, addr string) client { t.Helper(); return dialGRPC(t, addr) }, false},
		"gRPC by Connect": {func(t *testing.T, addr string) client {
			t.Helper()
			return dialConnect(t, addr, true, connect.WithGRPC())
		}, false},
		"gRPC-Web": {func(t *testing.T, addr string) client {
			t.Helper()
			return dialConnect(t, addr, false, connect.WithGRPCWeb())
		}, true},
		"Connect": {func(t *testing.T, addr string) client { t.Helper(); return dialConnect(t, addr, false) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &env{T: t, target: target{name, func(t *testing.T, s *service, scope scopeOf) client {
				t.Helper()
				return c.dial(t, startProxy(t, startConnect(t, s, scope), stripTrailer))
			}}}
			s := e.serve(setup{handler: always(outcome{body: []byte("done"), trailer: []pair{{"x-sum", "abc"}}})})
			for range 2 {
				if a := e.call(s, keyed("k")); (a.code == 0) != c.works || c.works && a.get("x-sum") != "abc" {
					t.Errorf("the client got %+v", a)
				}
			}
			e.wantRuns(s, 1)
		})
	}
}

// Connect sends procedures without side effects as GETs, which pass through.
func TestCallByGETPassesThrough(t *testing.T) {
	t.Parallel()
	var gets atomic.Int32
	e := &env{T: t, target: target{"Connect by GET", func(t *testing.T, s *service, scope scopeOf) client {
		t.Helper()
		addr := startProxy(t, startConnect(t, s, scope), func(res *http.Response) {
			if res.Request.Method == http.MethodGet {
				gets.Add(1)
			}
		})
		return dialConnect(t, addr, false, connect.WithHTTPGet())
	}}}
	s := e.serve(setup{Config: protocol.Config{Required: true}})
	for n := byte(1); n <= 2; n++ {
		if a := e.call(s, call{procedure: read, keys: []string{"k"}}); a.code != 0 || a.replayed() || a.body[0] != n {
			t.Errorf("call %d got %+v", n, a)
		}
	}
	if gets.Load() != 2 {
		t.Errorf("%d calls came as GETs, want 2", gets.Load())
	}
}

// A handler of unknown services gets every call as a stream, which passes through.
func TestUnknownServiceIsAStream(t *testing.T) {
	t.Parallel()
	e := &env{T: t, target: target{"a proxy of gRPC", func(t *testing.T, s *service, _ scopeOf) client {
		t.Helper()
		server := grpc.NewServer(
			grpc.UnaryInterceptor(reprisegrpc.UnaryServerInterceptor(s.guard, reprisegrpc.Unscoped)),
			grpc.StreamInterceptor(reprisegrpc.StreamServerInterceptor(s.guard)),
			grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
				in := new(request)
				if err := stream.RecvMsg(in); err != nil {
					return err
				}
				return stream.SendMsg(&response{Value: s.run(stream.Context(), in).body})
			}))
		ln := listen(t)
		go func() { _ = server.Serve(ln) }() // until Stop
		t.Cleanup(server.Stop)
		return dialGRPC(t, ln.Addr().String())
	}}}
	s := e.serve(setup{})
	for n := byte(1); n <= 2; n++ {
		if a := e.call(s, keyed("k")); a.code != 0 || a.body[0] != n || a.get("idempotency-status") != "unprotected" {
			t.Errorf("call %d got %+v", n, a)
		}
	}
}
