// Package connect_test proves the net/http adapter with the three protocols of
// connect-go: its own, gRPC and gRPC-Web, over HTTP/1.1 and HTTP/2.
package connect_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

const (
	procedure = "/orders.v1.Orders/Create"
	streaming = "/orders.v1.Orders/CreateStream"
)

type (
	request  = connect.Request[wrapperspb.StringValue]
	response = connect.Response[wrapperspb.StringValue]
	stream   = connect.ServerStream[wrapperspb.StringValue]
)

// orders is a service that counts its runs.
type orders struct{ runs atomic.Int32 }

// create fails in the way that the request names, or creates an order.
func (o *orders) create(_ context.Context, r *request) (*response, error) {
	n := o.runs.Add(1)
	if err := failure(r.Msg.GetValue()); err != nil {
		return nil, err
	}
	res := connect.NewResponse(wrapperspb.String(strings.Repeat("order ", int(n))))
	res.Header().Set("X-Order", "1")
	res.Trailer().Set("X-Sum", "abc")
	return res, nil
}

// createStream sends three orders, and then fails in the way that the request names.
func (o *orders) createStream(_ context.Context, r *request, s *stream) error {
	n := o.runs.Add(1)
	s.ResponseHeader().Set("X-Order", "1")
	s.ResponseTrailer().Set("X-Sum", "abc")
	for range 3 {
		if err := s.Send(wrapperspb.String(strings.Repeat("order ", int(n)))); err != nil {
			return err
		}
	}
	return failure(r.Msg.GetValue())
}

func failure(how string) error {
	for _, code := range []connect.Code{connect.CodeInvalidArgument, connect.CodeUnavailable} {
		if how == code.String() {
			err := connect.NewError(code, errors.New("as the request says"))
			err.Meta().Set("X-Why", how)
			return err
		}
	}
	return nil
}

// answer is a client's response.
type answer struct {
	messages           []string
	order, sum         string
	code, message, why string
}

func (a *answer) fail(err error) {
	if failed, ok := errors.AsType[*connect.Error](err); ok {
		a.code, a.message, a.why = failed.Code().String(), failed.Message(), failed.Meta().Get("X-Why")
	}
}

func (a *answer) equal(b answer) bool {
	return slices.Equal(a.messages, b.messages) && a.order == b.order && a.sum == b.sum &&
		a.code == b.code && a.message == b.message && a.why == b.why
}

// service is an orders service behind the middleware.
type service struct {
	orders
	unary, streamed *connect.Client[wrapperspb.StringValue, wrapperspb.StringValue]
}

func serve(t *testing.T, h2 bool, options ...connect.ClientOption) *service {
	t.Helper()
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
	if err != nil {
		t.Fatal(err)
	}
	s := new(service)
	mux := http.NewServeMux()
	mux.Handle(procedure, connect.NewUnaryHandler(procedure, s.create))
	mux.Handle(streaming, connect.NewServerStreamHandler(streaming, s.createStream))

	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler: reprisehttp.Middleware(guard, reprisehttp.Unscoped)(mux), ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols),
	}
	transport := &http.Transport{Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(!h2)
	server.Protocols.SetUnencryptedHTTP2(h2)
	transport.Protocols.SetHTTP1(!h2)
	transport.Protocols.SetUnencryptedHTTP2(h2)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		_ = guard.Close(context.WithoutCancel(t.Context()))
	})
	client, base := &http.Client{Transport: transport}, "http://"+ln.Addr().String()
	s.unary = connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](client, base+procedure, options...)
	s.streamed = connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](client, base+streaming, options...)
	return s
}

func keyed(how string) *request {
	r := connect.NewRequest(wrapperspb.String(how))
	r.Header().Set("Idempotency-Key", "key-"+how)
	return r
}

func (s *service) call(ctx context.Context, how string) (a answer) {
	res, err := s.unary.CallUnary(ctx, keyed(how))
	if err != nil {
		a.fail(err)
		return a
	}
	a.messages, a.order, a.sum = []string{res.Msg.GetValue()}, res.Header().Get("X-Order"), res.Trailer().Get("X-Sum")
	return a
}

func (s *service) stream(ctx context.Context, how string) (a answer) {
	res, err := s.streamed.CallServerStream(ctx, keyed(how))
	if err != nil {
		a.fail(err)
		return a
	}
	defer res.Close()
	for res.Receive() {
		a.messages = append(a.messages, res.Msg().GetValue())
	}
	a.fail(res.Err())
	a.order, a.sum = res.ResponseHeader().Get("X-Order"), res.ResponseTrailer().Get("X-Sum")
	return a
}

// TestRetriesGetTheFirstResponse calls each protocol twice with one key: the response is
// the same, trailers and errors included, and the service ran once. An error that is
// worth a retry is released where its status tells so.
func TestRetriesGetTheFirstResponse(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]struct {
		options []connect.ClientOption
		h2      bool

		// A stream of the Connect protocol and of gRPC-Web has its status at the end of
		// the body, where no middleware looks for it: such an error is kept.
		unaryTells, streamTells bool
	}{
		"connect over HTTP/1.1":  {unaryTells: true},
		"connect over HTTP/2":    {h2: true, unaryTells: true},
		"connect with JSON":      {options: []connect.ClientOption{connect.WithProtoJSON()}, unaryTells: true},
		"gRPC over HTTP/2":       {options: []connect.ClientOption{connect.WithGRPC()}, h2: true, unaryTells: true, streamTells: true},
		"gRPC-Web over HTTP/1.1": {options: []connect.ClientOption{connect.WithGRPCWeb()}, unaryTells: true},
		"gRPC-Web over HTTP/2":   {options: []connect.ClientOption{connect.WithGRPCWeb()}, h2: true, unaryTells: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, call := range map[string]func(*service, context.Context, string) answer{
				"unary": (*service).call, "stream": (*service).stream,
			} {
				for how, want := range map[string]int32{"fine": 1, "invalid_argument": 1, "unavailable": 2} {
					if tells := kind == "unary" && p.unaryTells || kind == "stream" && p.streamTells; !tells {
						want = 1
					}
					s := serve(t, p.h2, p.options...)
					first := call(s, t.Context(), how)
					again := call(s, t.Context(), how)
					if runs := s.runs.Load(); runs != want {
						t.Errorf("%s, %s: %d runs, want %d", kind, how, runs, want)
					}
					if want == 1 && !again.equal(first) {
						t.Errorf("%s, %s: the retry got\n%+v, the first call\n%+v", kind, how, again, first)
					}
					if how == "fine" && (first.code != "" || first.sum != "abc" || first.order != "1") || how != "fine" && first.code != how {
						t.Errorf("%s, %s: the first call got %+v", kind, how, first)
					}
				}
			}
		})
	}
}
