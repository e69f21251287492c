package edges_test

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	repriseconnect "github.com/reprise-go/reprise/adapters/connect"
	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
)

// describe returns the type and the bytes of a detail.
func describe(d *anypb.Any) string {
	return string(d.MessageName()) + " " + hex.EncodeToString(d.GetValue())
}

// startConnect serves s with connect-go, over HTTP/1.1 and HTTP/2, and returns its
// address.
func startConnect(t *testing.T, s *service, scope scopeOf) string {
	t.Helper()
	return serveHTTP(t, ordersOf(s, connect.WithInterceptors(outerConnect{s}, repriseconnect.NewInterceptor(s.guard,
		func(ctx context.Context, req connect.AnyRequest) (string, error) { return scope(ctx, req.Header().Get) }))))
}

// ordersOf returns the handler of s.
func ordersOf(s *service, interceptors connect.HandlerOption) http.Handler {
	mux := http.NewServeMux()
	for _, procedure := range []string{create, cancel, read, check} {
		level := connect.IdempotencyUnknown
		if procedure == read {
			level = connect.IdempotencyNoSideEffects
		}
		mux.Handle(procedure, connect.NewUnaryHandler(procedure, func(ctx context.Context, req *connect.Request[request]) (*connect.Response[response], error) {
			out := s.run(ctx, req.Msg)
			return respondConnect(ctx, out, wrapperspb.Bytes(out.body))
		}, interceptors, connect.WithIdempotency(level)))
	}
	mux.Handle(text, connect.NewUnaryHandler(text, func(ctx context.Context, req *connect.Request[request]) (*connect.Response[wrapperspb.StringValue], error) {
		out := s.run(ctx, req.Msg)
		return respondConnect(ctx, out, wrapperspb.String(out.text))
	}, interceptors))
	mux.Handle(register, connect.NewUnaryHandler(register, func(ctx context.Context, _ *connect.Request[entry]) (*connect.Response[response], error) {
		out := s.run(ctx, nil)
		return respondConnect(ctx, out, wrapperspb.Bytes(out.body))
	}, interceptors))
	for procedure, level := range map[string]connect.IdempotencyLevel{watch: connect.IdempotencyUnknown, list: connect.IdempotencyNoSideEffects} {
		mux.Handle(procedure, connect.NewServerStreamHandler(procedure, func(_ context.Context, _ *connect.Request[request], stream *connect.ServerStream[response]) error {
			for range 3 {
				if err := stream.Send(new(response)); err != nil {
					return err
				}
			}
			return nil
		}, interceptors, connect.WithIdempotency(level)))
	}
	return mux
}

// serveHTTP serves h over HTTP/1.1 and HTTP/2, and returns its address.
func serveHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	ln := listen(t)
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// outerConnect sets another header, and recovers from panics.
type outerConnect struct{ s *service }

func (o outerConnect) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (res connect.AnyResponse, err error) {
		defer func() {
			if recover() != nil {
				res, err = nil, connect.NewError(connect.CodeInternal, errors.New("recovered"))
			}
		}()
		o.s.outer.Store(&ctx)
		if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
			info.ResponseHeader().Set("X-Outer", "1")
		}
		return next(ctx, req)
	}
}

func (outerConnect) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (outerConnect) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

func respondConnect[T any](ctx context.Context, out outcome, message *T) (*connect.Response[T], error) {
	info, _ := connect.CallInfoForHandlerContext(ctx)
	if out.err != nil {
		return nil, out.err
	}
	if out.code != 0 {
		failed := connect.NewError(connect.Code(out.code), errors.New(out.message))
		for _, d := range out.details {
			detail, err := connect.NewErrorDetail(d)
			if err != nil {
				return nil, err
			}
			failed.AddDetail(detail)
		}
		header, trailer := failed.Meta(), failed.Meta()
		if out.early {
			header, trailer = info.ResponseHeader(), info.ResponseTrailer()
		}
		addLines(header, out.header)
		addLines(trailer, out.trailer)
		return nil, failed
	}
	res := connect.NewResponse(message)
	header, trailer := res.Header(), res.Trailer()
	if out.early {
		header, trailer = info.ResponseHeader(), info.ResponseTrailer()
	}
	addLines(header, out.header)
	addLines(trailer, out.trailer)
	return res, nil
}

func addLines(h http.Header, lines []pair) {
	for _, line := range lines {
		if strings.HasSuffix(line.name, "-bin") {
			line.value = connect.EncodeBinaryHeader([]byte(line.value))
		}
		h.Add(line.name, line.value)
	}
}

// connectClient calls with connect-go.
type connectClient struct {
	http    *http.Client
	base    string
	options []connect.ClientOption
}

func dialConnect(t *testing.T, addr string, h2 bool, options ...connect.ClientOption) client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!h2)
	transport.Protocols.SetUnencryptedHTTP2(h2)
	t.Cleanup(transport.CloseIdleConnections)
	return connectClient{&http.Client{Transport: transport}, "http://" + addr, options}
}

func requestOf[T any](with call, message *T) *connect.Request[T] {
	req := connect.NewRequest(message)
	addLines(req.Header(), with.lines())
	return req
}

func (c connectClient) call(ctx context.Context, with call) answer {
	options := c.options
	if with.path() == read {
		options = append(options, connect.WithIdempotency(connect.IdempotencyNoSideEffects))
	}
	var res *connect.Response[response]
	var err error
	if with.entry != nil {
		res, err = connect.NewClient[entry, response](c.http, c.base+with.path(), options...).CallUnary(ctx, requestOf(with, with.entry))
	} else {
		res, err = connect.NewClient[request, response](c.http, c.base+with.path(), options...).CallUnary(ctx, requestOf(with, with.order()))
	}
	if err != nil {
		return connectError(err)
	}
	return answer{body: res.Msg.GetValue(), header: lower(res.Header()), trailer: lower(res.Trailer())}
}

func (c connectClient) stream(ctx context.Context, with call) answer {
	res, err := connect.NewClient[request, response](c.http, c.base+cmp.Or(with.procedure, watch), c.options...).CallServerStream(ctx, requestOf(with, new(request)))
	if err != nil {
		return connectError(err)
	}
	defer res.Close()
	n := byte(0)
	for res.Receive() {
		n++
	}
	if err := res.Err(); err != nil {
		return connectError(err)
	}
	return answer{body: []byte{n}, header: lower(res.ResponseHeader()), trailer: lower(res.ResponseTrailer())}
}

func connectError(err error) answer {
	var failed *connect.Error
	if !errors.As(err, &failed) {
		return answer{code: 2, message: err.Error(), err: err}
	}
	a := answer{code: uint32(failed.Code()), message: failed.Message(), header: lower(failed.Meta()), trailer: lower(failed.Meta()), err: err}
	for _, d := range failed.Details() {
		a.details = append(a.details, d.Type()+" "+hex.EncodeToString(d.Bytes()))
	}
	return a
}

// lower returns a header as gRPC shows it: names in lower case, binary values decoded.
func lower(h http.Header) map[string][]string {
	all := map[string][]string{}
	for name, values := range h {
		name = strings.ToLower(name)
		for _, value := range values {
			if strings.HasSuffix(name, "-bin") {
				raw, err := connect.DecodeBinaryHeader(value)
				if err != nil {
					raw = []byte(err.Error())
				}
				value = string(raw)
			}
			all[name] = append(all[name], value)
		}
	}
	return all
}

func connectDialer(h2 bool, options ...connect.ClientOption) func(t *testing.T, addr string) client {
	return func(t *testing.T, addr string) client {
		t.Helper()
		return dialConnect(t, addr, h2, options...)
	}
}

var targets = []target{
	{"grpc-go", startGRPC, dialGRPC},
	{"grpc-go with gzip", startGRPC, dialGzip},
	{"grpc-go in a server of net/http", func(t *testing.T, s *service, scope scopeOf) string {
		t.Helper()
		return serveHTTP(t, newGRPC(s, scope))
	}, dialGRPC},
	{"grpc-go to Connect", startConnect, dialGRPC},
	{"Connect over HTTP 1.1", startConnect, connectDialer(false)},
	{"Connect with JSON over HTTP 2", startConnect, connectDialer(true, connect.WithProtoJSON(), connect.WithSendGzip())},
	{"gRPC by Connect", startConnect, connectDialer(true, connect.WithGRPC(), connect.WithSendGzip())},
	{"gRPC-Web over HTTP 1.1", startConnect, connectDialer(false, connect.WithGRPCWeb())},
}

// TestMiddlewareOfNetHTTP retries calls behind the middleware of net/http, in place of an
// interceptor: a replay has the trailers, and an error that is worth a retry is released.
func TestMiddlewareOfNetHTTP(t *testing.T) {
	t.Parallel()
	for _, target := range targets {
		target.serve = func(t *testing.T, s *service, _ scopeOf) string {
			t.Helper()
			behind := reprisehttp.Middleware(s.guard, reprisehttp.Unscoped)
			return serveHTTP(t, behind(ordersOf(s, connect.WithInterceptors())))
		}
		t.Run(target.name, func(t *testing.T) {
			t.Parallel()
			e := &env{T: t, target: target}
			lines := outcome{header: []pair{{"x-order", "1"}}, trailer: []pair{{"x-sum", "abc"}}}
			for code, runs := range map[uint32]int32{0: 1, 3: 1, unavailable: 2} {
				out := lines
				out.code = code
				s := e.serve(setup{Config: protocol.Config{Required: true}, handler: always(out)})
				c := entryWith("", "a") // without a map, whose encoding differs from call to call
				c.keys = []string{"k"}
				first, again := e.call(s, c), e.call(s, c)
				e.wantRuns(s, runs)
				e.same(first, again)
				if first.code != code || again.get("x-order") != "1" || again.get("x-sum") != "abc" || again.replayed() != (runs == 1) {
					t.Errorf("code %d: the retry got %+v", code, again)
				}
			}
			s := e.serve(setup{Config: protocol.Config{Required: true}})
			for _, replayed := range []bool{false, true} {
				if a := s.stream(t.Context(), keyed("k")); a.code != 0 || a.body[0] != 3 || a.replayed() != replayed {
					t.Errorf("the stream got %+v, want it replayed: %v", a, replayed)
				}
			}
		})
	}
}

// anyOf returns a message in an Any.
func anyOf(m proto.Message) string {
	d, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return describe(d)
}
