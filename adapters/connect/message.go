package repriseconnect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/reprise-go/reprise/core/protocol"
)

var errNoMessage = errors.New("repriseconnect: the message is not a protocol buffers message")

// encode returns the deterministic encoding of a message.
func encode(m any) ([]byte, error) {
	message, ok := m.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%w: %T", errNoMessage, m)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(message)
}

// fieldsOf returns the fields of a message for [protocol.Call].Field.
func fieldsOf(m protoreflect.Message) func(name string) any {
	return func(name string) any {
		fields := m.Descriptor().Fields()
		f := fields.ByName(protoreflect.Name(name))
		if f == nil {
			f = fields.ByJSONName(name)
		}
		switch {
		case f == nil || !m.Has(f):
			return nil
		case f.Message() != nil && !f.IsList() && !f.IsMap():
			return fieldsOf(m.Get(f).Message())
		default:
			return m.Get(f).Interface()
		}
	}
}

// nameOf returns the full name of a message.
func nameOf(m any) string { return string(m.(proto.Message).ProtoReflect().Descriptor().FullName()) }

// coded returns the error that Connect makes of a handler's.
func coded(err error) *connect.Error {
	var failed *connect.Error
	switch {
	case errors.As(err, &failed) && failed != nil:
		return failed
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	default:
		return connect.NewError(connect.CodeUnknown, err)
	}
}

const typePrefix = "type.googleapis.com/"

// resultOf returns the stored form of an error. One without a code, which the protocols
// send in different ways, is UNKNOWN: no retry may take it for a success.
func resultOf(err *connect.Error) protocol.CallResult {
	code := err.Code()
	if code == 0 {
		code = connect.CodeUnknown
	}
	result := protocol.CallResult{Code: uint32(code), Message: err.Message()}
	for _, d := range err.Details() {
		result.Details = append(result.Details, protocol.Detail{Type: typePrefix + d.Type(), Value: d.Bytes()})
	}
	return result
}

// send answers a call with r.
func send(ctx context.Context, req connect.AnyRequest, r protocol.CallResult) (connect.AnyResponse, error) {
	if r.Code == 0 {
		message, err := decode(req, r.Type, r.Body)
		if err != nil {
			return nil, err
		}
		return respond(message, r), nil
	}
	failed := connect.NewError(connect.Code(r.Code), errors.New(r.Message))
	for _, d := range r.Details {
		if detail, err := connect.NewErrorDetail(&anypb.Any{TypeUrl: d.Type, Value: d.Value}); err == nil {
			failed.AddDetail(detail)
		}
	}
	header := failed.Meta()
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
		header = info.ResponseHeader() // apart from the trailer where the protocol does
	}
	set(header, r.Header)
	set(failed.Meta(), r.Trailer)
	return nil, failed
}

// respond returns a response with a message and the metadata of r.
func respond(message proto.Message, r protocol.CallResult) connect.AnyResponse {
	var res connect.AnyResponse
	switch message := message.(type) {
	case *dynamicpb.Message:
		res = connect.NewResponse(message)
	case *emptypb.Empty:
		res = connect.NewResponse(message)
	}
	set(res.Header(), r.Header)
	set(res.Trailer(), r.Trailer)
	return res
}

// decode returns the message of a replay. If this program lacks its type, such as one of
// another release, the message has the bytes as its unknown fields, which only the binary
// codec writes.
func decode(req connect.AnyRequest, name string, body []byte) (proto.Message, error) {
	if known, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name)); err == nil {
		if m := dynamicpb.NewMessage(known.Descriptor()); proto.Unmarshal(body, m) == nil {
			return m, nil
		}
	}
	m := new(emptypb.Empty)
	if strings.Contains(req.Header().Get("Content-Type"), "json") || proto.Unmarshal(body, m) != nil {
		return nil, connect.NewError(connect.CodeDataLoss, errors.New("The response that was kept for this call cannot be read.")) //nolint:staticcheck,revive // a sentence for clients
	}
	return m, nil
}

// fields returns a header in the form of the protocol.
func fields(h http.Header) protocol.Header {
	var list []protocol.Field
	for name, values := range h {
		for i, value := range values {
			list = append(list, protocol.Field{Name: name, Value: value, Add: i > 0})
		}
	}
	slices.SortStableFunc(list, func(a, b protocol.Field) int { return strings.Compare(a.Name, b.Name) })
	return protocol.NewHeader(list...)
}

// set adds the fields of a result to a header.
func set(to http.Header, from protocol.Header) {
	for f := range from.All() {
		to.Add(f.Name, f.Value)
	}
}
