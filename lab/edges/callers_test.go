package edges_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	repriseclient "github.com/reprise-go/reprise/client"
	repriseconnectclient "github.com/reprise-go/reprise/client/connect"
	reprisegrpcclient "github.com/reprise-go/reprise/client/grpc"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// caller is a client that keys and retries its calls, and the server that it calls.
type caller struct {
	name   string
	native bool // the server is one of grpc-go
	serve  func(t *testing.T, s *service, scope scopeOf) (addr string)
	dial   func(t *testing.T, addr string, c callerConfig) client

	refusalOf func(error) repriseclient.Code
}

// callerConfig is the configuration of both modules.
type callerConfig = reprisegrpcclient.Config

var callers = []caller{
	{"grpc-go", true, startGRPC, dialGRPCCaller, reprisegrpcclient.RefusalOf},
	{"grpc-go to Connect", false, startConnect, dialGRPCCaller, reprisegrpcclient.RefusalOf},
	connectCaller("Connect over HTTP 1.1", false),
	connectCaller("Connect with JSON over HTTP 2", true, connect.WithProtoJSON(), connect.WithSendGzip()),
	connectCaller("gRPC by Connect", true, connect.WithGRPC()),
	connectCaller("gRPC-Web over HTTP 1.1", false, connect.WithGRPCWeb()),
}

func dialGRPCCaller(t *testing.T, addr string, c callerConfig) client {
	t.Helper()
	options, err := reprisegrpcclient.DialOptions(c)
	labtest.Must(t, err)
	return grpcClient{conn: connectGRPC(t, addr, options...)}
}

func connectCaller(name string, h2 bool, options ...connect.ClientOption) caller {
	return caller{name, false, startConnect, func(t *testing.T, addr string, c callerConfig) client {
		t.Helper()
		interceptor, err := repriseconnectclient.NewInterceptor(repriseconnectclient.Config(c))
		labtest.Must(t, err)
		return dialConnect(t, addr, h2, append(options, connect.WithInterceptors(interceptor))...)
	}, repriseconnectclient.RefusalOf}
}

// The clients of Connect whose calls go through a transport below connect-go, which sees
// only requests and responses of HTTP.
var transported = []caller{
	overTransport("Connect over HTTP 1.1 and a transport", false),
	overTransport("Connect with JSON over HTTP 2 and a transport", true, connect.WithProtoJSON(), connect.WithSendGzip()),
	overTransport("gRPC by Connect and a transport", true, connect.WithGRPC()),
}

func overTransport(name string, h2 bool, options ...connect.ClientOption) caller {
	return caller{name: name, serve: startConnect, dial: func(t *testing.T, addr string, c callerConfig) client {
		t.Helper()
		to := dialConnect(t, addr, h2, options...).(connectClient)
		to.http = &http.Client{Transport: retrying(t, to.http.Transport, c.Client)}
		return to
	}}
}

// quick has short waits where the service names none.
func quick() repriseclient.Config {
	return repriseclient.Config{Delay: time.Millisecond, MaxDelay: 10 * time.Millisecond}
}

// call is a service, and a client behind a proxy that can break its connections.
type called struct {
	*env
	*service

	proxy *servers.Proxy
	log   *attempts
}

// eachCaller runs a test with every client, and with more.
func eachCaller(t *testing.T, test func(t *testing.T, c caller), more ...caller) {
	t.Helper()
	for _, c := range slices.Concat(callers, more) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// start starts a service, and a client of it.
func (c caller) start(t *testing.T, with setup, cfg callerConfig) *called {
	t.Helper()
	to := &called{log: new(attempts)}
	cfg.Client.Observer = to.log
	to.env = &env{T: t, target: target{c.name, func(t *testing.T, s *service, scope scopeOf) string {
		t.Helper()
		to.proxy = servers.StartProxy(t, c.serve(t, s, scope))
		return to.proxy.Addr()
	}, func(t *testing.T, addr string) client { t.Helper(); return c.dial(t, addr, cfg) }}}
	to.service = to.serve(with)
	return to
}

// attempts is an observer of a client.
type attempts struct {
	mu    sync.Mutex
	ended []repriseclient.AttemptEnd
	calls []repriseclient.CallEnd
	each  func(n int, e repriseclient.AttemptEnd) // called with every attempt
}

func (a *attempts) StartCall(ctx context.Context, _ repriseclient.CallStart) context.Context {
	return ctx
}

func (a *attempts) EndAttempt(_ context.Context, e repriseclient.AttemptEnd) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = append(a.ended, e)
	if a.each != nil {
		a.each(len(a.ended), e)
	}
}

func (a *attempts) EndCall(_ context.Context, e repriseclient.CallEnd) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, e)
}

// want fails unless the last call had an outcome, after so many attempts.
func (a *attempts) want(t *testing.T, outcome repriseclient.Outcome, n int) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.calls) == 0 || a.calls[len(a.calls)-1].Outcome != outcome || a.calls[len(a.calls)-1].Attempts != n {
		t.Errorf("the calls ended with %+v, want %v after %d attempts", a.calls, outcome, n)
	}
}
