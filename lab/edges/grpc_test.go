package edges_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/wrapperspb"

	reprisegrpc "github.com/reprise-go/reprise/adapters/grpc"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// listen returns a listener on a free port.
func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	labtest.Must(t, err)
	return ln
}

// startGRPC serves s with grpc-go, and returns its address.
func startGRPC(t *testing.T, s *service, scope scopeOf) string {
	t.Helper()
	server := newGRPC(s, scope)
	ln := listen(t)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// newGRPC returns a server of s.
func newGRPC(s *service, scope scopeOf) *grpc.Server {
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(s.outerUnary, reprisegrpc.UnaryServerInterceptor(s.guard, func(ctx context.Context) (string, error) {
			return scope(ctx, func(name string) string {
				if values := metadata.ValueFromIncomingContext(ctx, name); len(values) > 0 {
					return values[0]
				}
				return ""
			})
		})),
		grpc.ChainStreamInterceptor(reprisegrpc.StreamServerInterceptor(s.guard)),
	)
	unary := func(procedure string) grpc.MethodDesc {
		name := procedure[len(orders)+2:]
		if procedure == check {
			name = "Check"
		}
		return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			var in proto.Message = new(request)
			if procedure == register {
				in = new(entry)
			}
			if err := decode(in); err != nil {
				return nil, err
			}
			return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: procedure}, func(ctx context.Context, in any) (any, error) {
				order, _ := in.(*request)
				return runGRPC(ctx, s, procedure, order)
			})
		}}
	}
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: orders, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{unary(create), unary(cancel), unary(read), unary(text), unary(register)},
		Streams: []grpc.StreamDesc{{StreamName: "Watch", ServerStreams: true, Handler: streamGRPC}, {StreamName: "List", ServerStreams: true, Handler: streamGRPC}},
	}, s)
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "grpc.health.v1.Health", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{unary(check)}}, s)
	return server
}

func streamGRPC(_ any, stream grpc.ServerStream) error {
	if err := stream.RecvMsg(new(request)); err != nil {
		return err
	}
	for range 3 {
		if err := stream.SendMsg(new(response)); err != nil {
			return err
		}
	}
	return nil
}

// outerUnary sets another header, and recovers from panics.
func (s *service) outerUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer func() {
		if recover() != nil {
			resp, err = nil, status.Error(codes.Internal, "recovered")
		}
	}()
	s.outer.Store(&ctx)
	if err := grpc.SetHeader(ctx, metadata.Pairs("x-outer", "1")); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func runGRPC(ctx context.Context, s *service, procedure string, in *request) (any, error) {
	out := s.run(ctx, in)
	set := grpc.SetHeader
	if out.early {
		set = grpc.SendHeader
	}
	if err := set(ctx, metadataOf(out.header)); err != nil {
		return nil, err
	}
	if err := grpc.SetTrailer(ctx, metadataOf(out.trailer)); err != nil {
		return nil, err
	}
	if out.early && grpc.SetHeader(ctx, metadata.Pairs("x-late", "1")) == nil {
		return nil, status.Error(codes.Internal, "a header was set after it was sent")
	}
	switch {
	case out.err != nil:
		return nil, out.err
	case out.code != 0:
		failed := status.New(codes.Code(out.code), out.message)
		for _, d := range out.details {
			more, err := failed.WithDetails(protoadapt.MessageV1Of(d))
			if err != nil {
				return nil, err
			}
			failed = more
		}
		return nil, failed.Err()
	case procedure == text:
		return wrapperspb.String(out.text), nil
	default:
		return wrapperspb.Bytes(out.body), nil
	}
}

func metadataOf(pairs []pair) metadata.MD {
	md := metadata.MD{}
	for _, p := range pairs {
		md.Append(p.name, p.value)
	}
	return md
}

// grpcClient calls with grpc-go.
type grpcClient struct{ conn *grpc.ClientConn }

func dialGRPC(t *testing.T, addr string) client {
	t.Helper()
	return grpcClient{connectGRPC(t, addr)}
}

func dialGzip(t *testing.T, addr string) client {
	t.Helper()
	return grpcClient{connectGRPC(t, addr, grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name)))}
}

func connectGRPC(t *testing.T, addr string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	labtest.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (c grpcClient) call(ctx context.Context, with call) answer {
	var header, trailer metadata.MD
	out := new(response)
	ctx = metadata.NewOutgoingContext(ctx, metadataOf(with.lines()))
	err := c.conn.Invoke(ctx, with.path(), with.message(), out, grpc.Header(&header), grpc.Trailer(&trailer))
	return grpcAnswer(out.GetValue(), header, trailer, err)
}

func grpcAnswer(body []byte, header, trailer metadata.MD, err error) answer {
	a := answer{body: body, header: header, trailer: trailer, err: err}
	s := status.Convert(err)
	a.code, a.message = uint32(s.Code()), s.Message()
	for _, d := range s.Proto().GetDetails() {
		a.details = append(a.details, describe(d))
	}
	return a
}

func (c grpcClient) stream(ctx context.Context, with call) answer {
	ctx = metadata.NewOutgoingContext(ctx, metadataOf(with.lines()))
	stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, cmp.Or(with.procedure, watch))
	if err != nil {
		return grpcAnswer(nil, nil, nil, err)
	}
	if err = stream.SendMsg(new(request)); err == nil {
		err = stream.CloseSend()
	}
	n := byte(0)
	for ; err == nil; n++ {
		err = stream.RecvMsg(new(response))
	}
	header, _ := stream.Header()
	if errors.Is(err, io.EOF) {
		return grpcAnswer([]byte{n - 1}, header, stream.Trailer(), nil)
	}
	return grpcAnswer(nil, header, stream.Trailer(), err)
}

// A handler that is no generated one may return no message at all, which gRPC sends as an
// empty one: it ran, and does not run again.
func TestNoMessageIsAnEmptyOne(t *testing.T) {
	t.Parallel()
	e := &env{T: t, target: targets[0]}
	interceptor := reprisegrpc.UnaryServerInterceptor(e.serve(setup{}).guard, reprisegrpc.Unscoped)
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("idempotency-key", "k"))
	runs := 0
	for range 2 {
		resp, err := interceptor(ctx, new(request), &grpc.UnaryServerInfo{FullMethod: create}, func(context.Context, any) (any, error) {
			runs++
			return nil, nil //nolint:nilnil // that is the point
		})
		if err != nil || resp != nil && proto.Size(resp.(proto.Message)) != 0 {
			t.Errorf("the answer is %v, %v", resp, err)
		}
	}
	if runs != 1 {
		t.Errorf("the handler ran %d times", runs)
	}
}
