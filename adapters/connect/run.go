package repriseconnect

import (
	"context"

	"connectrpc.com/connect"

	"github.com/reprise-go/reprise/core/protocol"
)

// run runs a handler in an exchange.
func run(ctx context.Context, req connect.AnyRequest, next connect.UnaryFunc, x *protocol.Exchange) (connect.AnyResponse, error) {
	defer x.Close()
	outer := outerMetadata(ctx, x)
	returned := false
	defer func() { //nolint:contextcheck // the exchange has its own
		if !returned { // the handler panicked, or ended its goroutine, or its result panics when it is read
			x.AbandonCall(false)
		}
	}()
	res, err := next(x.Context(), req) //nolint:contextcheck // the exchange has its own
	err = withoutControlFields(x, err)
	result, ok := resultFor(outer, res, err)
	returned = true
	var reply protocol.CallReply
	if ok {
		reply = x.FinishCall(result) //nolint:contextcheck // the exchange has its own
	} else {
		reply = x.AbandonCall(true) //nolint:contextcheck // the exchange has its own
	}
	if reply.Replace {
		outer.restore()
		return send(ctx, req, reply.Result)
	}
	if f := reply.Mark; f.Name != "" {
		if err == nil {
			res.Header().Del(f.Name)
		}
		outer.header.Set(f.Name, f.Value)
	}
	return res, err
}

// resultFor returns the result of a handler, with its metadata, and false for a message
// that Connect cannot send either.
func resultFor(outer *metadata, res connect.AnyResponse, err error) (result protocol.CallResult, ok bool) {
	header, trailer := outer.added()
	if err != nil {
		failed := coded(err)
		if !connect.IsWireError(failed) { // Connect does not send the metadata of those
			trailer = merge(trailer, metaOf(failed))
		}
		result = resultOf(failed)
	} else {
		dropControlFields(outer.x, res.Header(), res.Trailer())
		header, trailer = merge(header, res.Header()), merge(trailer, res.Trailer())
		body, err := encode(res.Any())
		if err != nil {
			return protocol.CallResult{}, false
		}
		result = protocol.CallResult{Type: nameOf(res.Any()), Body: body}
	}
	result.Header, result.Trailer = fields(header), fields(trailer)
	return result, true
}
