package repriseconnectclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"connectrpc.com/connect"

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

// NewInterceptor returns an interceptor for clients that keys and retries unary calls. It
// is inactive in handlers. Interceptors after it run once for each attempt, with a
// request that is not a [connect.Request] but has its message and its header. The error
// names the invalid field of c.
func NewInterceptor(c Config) (connect.Interceptor, error) {
	caller, err := rpc.NewCaller(c.Client)
	if err != nil {
		return nil, err
	}
	return &interceptor{caller, c.Skip}, nil
}

// Replayed reports whether the header of a response, or the metadata of an error, says
// that the result is the recorded one of an earlier call with the key. It knows the
// default name of the field only, Idempotent-Replayed.
func Replayed(header http.Header) bool { return header.Get("Idempotent-Replayed") == "true" }

// RefusalOf returns the code with which Reprise refused a call, or an empty one for any
// other error.
func RefusalOf(err error) repriseclient.Code {
	var failed *connect.Error
	if !errors.As(err, &failed) {
		return ""
	}
	return repriseclient.Code(rpcstatus.RefusalOf(detailsOf(failed)).Code)
}

type interceptor struct {
	caller *rpc.Caller
	skip   func(string) bool
}

// WrapUnary implements [connect.Interceptor].
func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (res connect.AnyResponse, err error) {
		spec := req.Spec()
		if !spec.IsClient || spec.IdempotencyLevel == connect.IdempotencyNoSideEffects || i.skip != nil && i.skip(spec.Procedure) {
			return next(ctx, req)
		}
		err = i.caller.Do(ctx, &rpc.Call{
			Host: req.Peer().Addr, Procedure: spec.Procedure, Keys: req.Header().Values(i.caller.Header()),
			Attempt: func(ctx context.Context, key string) rpc.Result {
				own := attempt{req, req.Header().Clone()}
				own.header.Set(i.caller.Header(), key)
				var err error
				if res, err = next(ctx, own); err != nil {
					return failure(err)
				}
				return rpc.Result{Metadata: res.Header()}
			},
		})
		if err != nil {
			return nil, withCode(ctx, err)
		}
		return res, nil
	}
}

// WrapStreamingClient implements [connect.Interceptor].
func (i *interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements [connect.Interceptor].
func (i *interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// attempt is the request of one attempt. Its header is a copy, because an attempt that
// was given up may still read it, and the caller may use the request again.
type attempt struct {
	connect.AnyRequest

	header http.Header
}

// Header implements [connect.AnyRequest].
func (a attempt) Header() http.Header { return a.header }

// failure returns the result of an attempt that failed.
func failure(err error) rpc.Result {
	r := rpc.Result{Err: err, Code: uint32(connect.CodeOf(err))}
	var failed *connect.Error
	if r.Broken = isBroken(err); !r.Broken && errors.As(err, &failed) {
		r.Metadata, r.Details = failed.Meta(), detailsOf(failed)
	}
	return r
}

// isBroken reports whether an error that the library made is that of a response that
// broke off, or that has no status. Its header may have arrived.
func isBroken(err error) bool {
	var op *net.OpError
	return !connect.IsWireError(err) &&
		(errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op) || strings.Contains(err.Error(), "stream error: stream ID "))
}

// detailsOf returns the details of an error.
func detailsOf(err *connect.Error) []rpcstatus.Detail {
	var details []rpcstatus.Detail
	for _, d := range err.Details() {
		details = append(details, rpcstatus.Detail{Type: d.Type(), Value: d.Bytes()})
	}
	return details
}

// withCode returns an error with a code of Connect, as every error of a call has.
func withCode(ctx context.Context, err error) error {
	var coded *connect.Error
	var not *repriseclient.NotSentError
	cause := context.Cause(ctx)
	ended := cause != nil && errors.Is(err, cause) // rather than the last attempt
	switch {
	case errors.Is(err, repriseclient.ErrAttemptTimeout) && !errors.Is(ctx.Err(), context.Canceled):
		return connect.NewError(connect.CodeDeadlineExceeded, err) // Connect's own is Canceled
	case errors.As(err, &coded) && !ended:
		return err
	case errors.Is(err, context.Canceled), errors.Is(ctx.Err(), context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	case errors.As(err, &not): // the key was refused here
		return connect.NewError(connect.CodeInvalidArgument, err)
	default:
		return connect.NewError(connect.CodeUnknown, err)
	}
}
