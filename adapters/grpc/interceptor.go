package reprisegrpc

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/reprise-go/reprise/core/protocol"
)

// Scope returns the name of the authenticated principal that a call's key belongs to: a
// tenant, an account, a user. An interceptor that authenticates has put it into ctx,
// which also has the metadata and the peer of the call. An empty name, one with a control
// byte, or an error refuses the call with PERMISSION_DENIED; an error that wraps
// store.ErrUnavailable with UNAVAILABLE, which clients retry.
type Scope func(ctx context.Context) (string, error)

// Unscoped is the [Scope] of services whose clients may share one key space. Anyone who
// learns another client's key can then replay its response.
func Unscoped(context.Context) (string, error) { return "", protocol.ErrUnscoped }

// UnaryServerInterceptor runs the unary handlers of a server once for each key. Many
// servers may share a guard. It panics if guard or scope is nil.
func UnaryServerInterceptor(guard *protocol.Guard, scope Scope) grpc.UnaryServerInterceptor {
	if guard == nil || scope == nil {
		panic("reprisegrpc: UnaryServerInterceptor needs a guard and a scope")
	}
	safe := new(safeMethods)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		call := protocol.Call{
			Procedure: info.FullMethod, Metadata: incoming{ctx}, Host: authority(ctx),
			Message: func() ([]byte, error) { return encode(req) }, Safe: safe.has(info.FullMethod),
		}
		if message := messageOf(req); message != nil {
			call.Field = fieldsOf(message.ProtoReflect())
		}
		admission := guard.AdmitCall(ctx, call, func() (string, error) { return scope(ctx) })
		switch {
		case admission.Pass:
			return handler(ctx, req)
		case admission.Exchange != nil:
			return run(ctx, req, handler, admission.Exchange)
		default:
			return send(ctx, admission.Result)
		}
	}
}

// StreamServerInterceptor passes streaming calls through. A call with a key gets the
// header idempotency-status: unprotected, and is reported to the engine's observer, since
// its client may believe that it is protected. A call that would pass through even if it
// were unary gets neither (see [protocol.Guard.PassStream]). It panics if guard is nil.
func StreamServerInterceptor(guard *protocol.Guard) grpc.StreamServerInterceptor {
	if guard == nil {
		panic("reprisegrpc: StreamServerInterceptor needs a guard")
	}
	safe := new(safeMethods)
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx := stream.Context()
		mark := guard.PassStream(ctx, protocol.Call{
			Procedure: info.FullMethod, Metadata: incoming{ctx}, Host: authority(ctx), Safe: safe.has(info.FullMethod),
		})
		if mark.Name != "" {
			_ = stream.SetHeader(metadata.Pairs(mark.Name, mark.Value)) // fails only where the client has left
		}
		return handler(srv, stream)
	}
}

// incoming is the metadata of a call, as [protocol.Call] reads it.
type incoming struct{ ctx context.Context } //nolint:containedctx // it lives as long as the check of one call

// Values returns the value of every field line called name.
func (m incoming) Values(name string) []string {
	return metadata.ValueFromIncomingContext(m.ctx, strings.ToLower(name))
}

// authority returns the host that the client called.
func authority(ctx context.Context) string {
	if values := metadata.ValueFromIncomingContext(ctx, ":authority"); len(values) > 0 {
		return values[0]
	}
	return ""
}

// safeMethods remembers which methods are declared to have no side effects. It forgets
// those that the program has no descriptor of: a server that handles unknown services
// gets any name that a client likes.
type safeMethods struct{ known sync.Map }

func (s *safeMethods) has(method string) bool {
	if known, ok := s.known.Load(method); ok {
		return known.(bool)
	}
	name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return false
	}
	options, ok := d.Options().(*descriptorpb.MethodOptions)
	safe := ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
	s.known.Store(method, safe)
	return safe
}
