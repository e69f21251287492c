package repriseconnect

import (
	"context"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/reprise-go/reprise/core/protocol"
)

// Scope returns the name of the authenticated principal that a call's key belongs to: a
// tenant, an account, a user. An empty name, one with a control byte, or an error refuses
// the call with permission_denied; an error that wraps store.ErrUnavailable with
// unavailable, which clients retry.
type Scope func(ctx context.Context, req connect.AnyRequest) (string, error)

// Unscoped is the [Scope] of services whose clients may share one key space. Anyone who
// learns another client's key can then replay its response.
func Unscoped(context.Context, connect.AnyRequest) (string, error) {
	return "", protocol.ErrUnscoped
}

// NewInterceptor returns an interceptor for handlers that runs them once for each key.
// Many handlers may share a guard. It is inactive in clients. It panics if guard or scope
// is nil.
//
// Streaming calls pass through. One with a key gets the header Idempotency-Status:
// unprotected, and is reported to the engine's observer, since its client may believe
// that it is protected. A call that would pass through even if it were unary gets neither
// (see [protocol.Guard.PassStream]).
func NewInterceptor(guard *protocol.Guard, scope Scope) connect.Interceptor {
	if guard == nil || scope == nil {
		panic("repriseconnect: NewInterceptor needs a guard and a scope")
	}
	return &interceptor{guard, scope}
}

type interceptor struct {
	guard *protocol.Guard
	scope Scope
}

// WrapUnary implements [connect.Interceptor].
func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		call := call(req.Spec(), req.Header())
		call.Safe = call.Safe || req.HTTPMethod() == http.MethodGet
		call.Message = func() ([]byte, error) { return encode(req.Any()) }
		if message, ok := req.Any().(proto.Message); ok {
			call.Field = fieldsOf(message.ProtoReflect())
		}
		admission := i.guard.AdmitCall(ctx, call, func() (string, error) { return i.scope(ctx, req) })
		switch {
		case admission.Pass:
			return next(ctx, req)
		case admission.Exchange != nil:
			return run(ctx, req, next, admission.Exchange)
		default:
			return send(ctx, req, admission.Result)
		}
	}
}

// WrapStreamingClient implements [connect.Interceptor].
func (i *interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements [connect.Interceptor].
func (i *interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if mark := i.guard.PassStream(ctx, call(conn.Spec(), conn.RequestHeader())); mark.Name != "" {
			conn.ResponseHeader().Set(mark.Name, mark.Value)
		}
		return next(ctx, conn)
	}
}

// call returns the protocol's view of a call, without the message.
func call(spec connect.Spec, header http.Header) protocol.Call {
	return protocol.Call{
		Procedure: spec.Procedure, Metadata: header, Host: header.Get("Host"),
		Safe: spec.IdempotencyLevel == connect.IdempotencyNoSideEffects,
	}
}
