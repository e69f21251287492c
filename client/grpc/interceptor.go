package reprisegrpcclient

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/client/internal/rpc"
	"github.com/reprise-go/reprise/client/internal/rpcstatus"
)

// Config is the configuration of the calls. Every field has a valid zero value.
type Config struct {
	// Client has the rules for keys and retries. Its Methods, MaxRequestBuffer and
	// MaxResponseBuffer have no effect.
	Client repriseclient.Config

	// Skip reports whether calls of a procedure ("/package.Service/Method") pass through
	// untouched, such as health checks and calls that the service does not protect, which a
	// retry would run again. The default is none: all are retried.
	Skip func(procedure string) bool
}

// DialOptions returns the options of a connection whose unary calls are keyed and
// retried: an interceptor, and a stats handler that observes whether an attempt was sent.
// Interceptors of later [grpc.WithChainUnaryInterceptor] options run once for each
// attempt; one of [grpc.WithUnaryInterceptor] runs once for each call. The error names
// the invalid field of c.
func DialOptions(c Config) ([]grpc.DialOption, error) {
	caller, err := rpc.NewCaller(c.Client)
	if err != nil {
		return nil, err
	}
	i := &interceptor{caller, c.Skip}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(i.unary), grpc.WithStatsHandler(sent{})}, nil
}

// Replayed reports whether the header of a response (see [grpc.Header]) says that the
// result is the recorded one of an earlier call with the key. It knows the default name
// of the field only, Idempotent-Replayed.
func Replayed(header metadata.MD) bool {
	return slices.Equal(header.Get("idempotent-replayed"), []string{"true"})
}

// RefusalOf returns the code with which Reprise refused a call, or an empty one for any
// other error.
func RefusalOf(err error) repriseclient.Code {
	return repriseclient.Code(rpcstatus.RefusalOf(detailsOf(status.Convert(err))).Code)
}

type interceptor struct {
	caller *rpc.Caller
	skip   func(string) bool
}

func (i *interceptor) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if i.skip != nil && i.skip(method) || declaredSafe(method) {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	md, _ := metadata.FromOutgoingContext(ctx)
	err := i.caller.Do(ctx, &rpc.Call{
		Host: path.Base(cc.Target()), Procedure: method, Keys: md.Get(i.caller.Header()),
		Attempt: func(ctx context.Context, key string) rpc.Result {
			own := md.Copy()
			own.Set(i.caller.Header(), key)
			var header, trailer metadata.MD
			var answered answer
			ctx = context.WithValue(metadata.NewOutgoingContext(ctx, own), answerOfContext{}, &answered)
			err := invoke(ctx, method, req, reply, cc, append(slices.Clip(opts), grpc.Header(&header), grpc.Trailer(&trailer))...)
			s := status.Convert(err)
			if err != nil && answered.missing() {
				return rpc.Result{Err: err, Code: uint32(s.Code()), Broken: isBroken(s)}
			}
			return rpc.Result{Err: err, Code: uint32(s.Code()), Metadata: headerOf(header, trailer), Details: detailsOf(s)}
		},
	})
	return withStatus(ctx, err)
}

// isBroken reports whether a status that gRPC invented is that of a stream that was reset
// or broke off. Where a connection broke, the code is Unavailable.
func isBroken(s *status.Status) bool {
	return s.Code() == codes.Internal && (strings.Contains(s.Message(), "RST_STREAM") || strings.Contains(s.Message(), "unexpected EOF"))
}

// withStatus returns an error with a status of gRPC, as every error of a call has.
func withStatus(ctx context.Context, err error) error {
	if errors.Is(err, repriseclient.ErrAttemptTimeout) && !errors.Is(ctx.Err(), context.Canceled) {
		return &callError{err, status.New(codes.DeadlineExceeded, err.Error())} // gRPC's own is Canceled
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) { // the call ended between attempts
		return &callError{err, status.New(status.FromContextError(ctx.Err()).Code(), err.Error())}
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	s := status.FromContextError(err)
	var not *repriseclient.NotSentError
	if s.Code() == codes.Unknown && errors.As(err, &not) { // the key was refused here
		s = status.New(codes.InvalidArgument, err.Error())
	}
	return &callError{err, s}
}

type callError struct {
	error
	status *status.Status
}

func (e *callError) Unwrap() error              { return e.error }
func (e *callError) GRPCStatus() *status.Status { return e.status }

// detailsOf returns the details of a status.
func detailsOf(s *status.Status) []rpcstatus.Detail {
	var details []rpcstatus.Detail
	for _, d := range s.Proto().GetDetails() {
		details = append(details, rpcstatus.Detail{Type: string(d.MessageName()), Value: d.GetValue()})
	}
	return details
}

// headerOf returns the metadata of a response as a header of HTTP.
func headerOf(parts ...metadata.MD) http.Header {
	h := http.Header{}
	for name, values := range metadata.Join(parts...) {
		h[http.CanonicalHeaderKey(name)] = values
	}
	return h
}

// declaredSafe reports whether the descriptor of a method, if the program has it, says
// that it has no side effects.
func declaredSafe(method string) bool {
	name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return false
	}
	options, ok := d.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}
