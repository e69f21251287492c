package reprisegrpc

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/reprise-go/reprise/core/protocol"
)

var errNoMessage = errors.New("reprisegrpc: the message is not a protocol buffers message")

// messageOf returns m as a protocol buffers message, nil if it is none.
func messageOf(m any) proto.Message {
	switch m := m.(type) {
	case proto.Message:
		return m
	case protoadapt.MessageV1:
		return protoadapt.MessageV2Of(m)
	default:
		return nil
	}
}

// encode returns the deterministic encoding of a message.
func encode(m any) ([]byte, error) {
	message := messageOf(m)
	if message == nil {
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

// resultOf returns the result of a handler, without its metadata, and false for a message
// that gRPC cannot send either.
func resultOf(resp any, err error) (protocol.CallResult, bool) {
	if err != nil {
		s, ok := status.FromError(err)
		if !ok {
			s = status.FromContextError(err) // as gRPC does
		}
		p := s.Proto()
		result := protocol.CallResult{Code: uint32(s.Code()), Message: s.Message()}
		for _, d := range p.GetDetails() {
			result.Details = append(result.Details, protocol.Detail{Type: d.GetTypeUrl(), Value: d.GetValue()})
		}
		return result, s.Code() != codes.OK
	}
	if resp == nil { // gRPC sends it as a message without fields
		resp = new(emptypb.Empty)
	}
	body, err := encode(resp)
	if err != nil {
		return protocol.CallResult{}, false
	}
	return protocol.CallResult{Type: string(messageOf(resp).ProtoReflect().Descriptor().FullName()), Body: body}, true
}

// send answers a call with r.
func send(ctx context.Context, r protocol.CallResult) (any, error) {
	var message any
	if r.Code == 0 {
		var err error
		if message, err = decode(r.Type, r.Body); err != nil {
			return nil, err // it is no replay, and has no field that says so
		}
	}
	_ = grpc.SetHeader(ctx, pairs(r.Header)) // fails only where the client has left, as the next does
	_ = grpc.SetTrailer(ctx, pairs(r.Trailer))
	if message != nil {
		return message, nil
	}
	p := status.New(codes.Code(r.Code), r.Message).Proto()
	for _, d := range r.Details {
		p.Details = append(p.Details, &anypb.Any{TypeUrl: d.Type, Value: d.Value})
	}
	return nil, status.ErrorProto(p)
}

// decode returns the message of a replay. If this program lacks its type, such as one of
// another release, the message has the bytes as its unknown fields.
func decode(name string, body []byte) (any, error) {
	if known, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name)); err == nil {
		if m := known.New().Interface(); proto.Unmarshal(body, m) == nil {
			return m, nil
		}
	}
	m := new(emptypb.Empty)
	if err := proto.Unmarshal(body, m); err != nil {
		return nil, status.Error(codes.DataLoss, "The response that was kept for this call cannot be read.")
	}
	return m, nil
}

const binary = "-bin"

// fields returns metadata in the form of the protocol: binary values are in base64.
func fields(md metadata.MD) protocol.Header {
	var list []protocol.Field
	for name, values := range md {
		name = strings.ToLower(name)
		for i, value := range values {
			if strings.HasSuffix(name, binary) {
				value = base64.RawStdEncoding.EncodeToString([]byte(value))
			}
			list = append(list, protocol.Field{Name: name, Value: value, Add: i > 0})
		}
	}
	slices.SortStableFunc(list, func(a, b protocol.Field) int { return strings.Compare(a.Name, b.Name) })
	return protocol.NewHeader(list...)
}

// pairs returns the metadata of a header.
func pairs(h protocol.Header) metadata.MD {
	md := make(metadata.MD, h.Len())
	for f := range h.All() {
		value := f.Value
		if strings.HasSuffix(strings.ToLower(f.Name), binary) {
			raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
			if err != nil {
				continue // gRPC refuses it, too
			}
			value = string(raw)
		}
		md.Append(f.Name, value)
	}
	return md
}
