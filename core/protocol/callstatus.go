package protocol

import (
	"encoding/binary"
	"strings"
	"time"
)

// This file has the few messages of google.rpc that a refusal and a kept error consist
// of, in the binary encoding of protocol buffers, so that no adapter needs their
// generated code. Package lab/edges compares them with it.

// Detail is a detail of an error: a message and the URL of its type, as in
// google.protobuf.Any.
type Detail struct {
	Type  string // "type.googleapis.com/google.rpc.RetryInfo"
	Value []byte // the encoded message
}

// detailPrefix is before the full name of a message in the URL of its type.
const detailPrefix = "type.googleapis.com/"

// The wire types of protocol buffers.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// errorInfo returns a google.rpc.ErrorInfo whose metadata has the URI of the problem's
// documentation.
func errorInfo(reason, domain, uri string) Detail {
	entry := appendText(appendText(nil, 1, "type"), 2, uri)
	value := appendText(appendText(nil, 1, reason), 2, domain)
	return Detail{Type: detailPrefix + "google.rpc.ErrorInfo", Value: appendText(value, 3, entry)}
}

// retryInfo returns a google.rpc.RetryInfo.
func retryInfo(delay time.Duration) Detail {
	var duration []byte
	duration = appendNumber(duration, 1, uint64(delay/time.Second)) //nolint:gosec // the delay is positive
	duration = appendNumber(duration, 2, uint64(delay%time.Second)) //nolint:gosec // likewise
	return Detail{Type: detailPrefix + "google.rpc.RetryInfo", Value: appendText(nil, 1, duration)}
}

// appendStatus appends a google.rpc.Status.
func appendStatus(dst []byte, code uint32, message string, details []Detail) []byte {
	dst = appendNumber(dst, 1, uint64(code))
	if message = strings.ToValidUTF8(message, "\uFFFD"); message != "" {
		dst = appendText(dst, 2, message)
	}
	for _, d := range details {
		dst = appendText(dst, 3, appendText(appendText(nil, 1, d.Type), 2, d.Value))
	}
	return dst
}

// appendNumber appends a field with a number; one that is zero is left out.
func appendNumber(dst []byte, field, n uint64) []byte {
	if n == 0 {
		return dst
	}
	return binary.AppendUvarint(binary.AppendUvarint(dst, field<<3|wireVarint), n)
}

// appendText appends a field with a text, bytes or a message.
func appendText[S string | []byte](dst []byte, field uint64, text S) []byte {
	dst = binary.AppendUvarint(dst, field<<3|wireBytes)
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// parseStatus reads a google.rpc.Status. The details are views into b. Unknown fields are
// ignored.
func parseStatus(b []byte) (code uint32, message string, details []Detail, ok bool) {
	for len(b) > 0 {
		var f wireField
		if f, b, ok = cutWireField(b); !ok {
			return 0, "", nil, false
		}
		switch {
		case f.is(1, wireVarint):
			code = uint32(f.number) //nolint:gosec // as protocol buffers read an int32
		case f.is(2, wireBytes):
			message = strings.ToValidUTF8(string(f.bytes), "\uFFFD")
		case f.is(3, wireBytes):
			d, ok := parseDetail(f.bytes)
			if !ok {
				return 0, "", nil, false
			}
			details = append(details, d)
		}
	}
	return code, message, details, true
}

// parseDetail reads a google.protobuf.Any.
func parseDetail(b []byte) (d Detail, ok bool) {
	for len(b) > 0 {
		var f wireField
		if f, b, ok = cutWireField(b); !ok {
			return Detail{}, false
		}
		switch {
		case f.is(1, wireBytes):
			d.Type = strings.ToValidUTF8(string(f.bytes), "\uFFFD")
		case f.is(2, wireBytes):
			d.Value = f.bytes
		}
	}
	return d, true
}

// wireField is one field of an encoded message.
type wireField struct {
	tag    uint64
	number uint64 // of a wireVarint
	bytes  []byte // of a wireBytes
}

func (f *wireField) is(field, wire uint64) bool { return f.tag == field<<3|wire }

// cutWireField reads the first field of b and returns the rest. ok is false if b does not
// start with a complete field of a known wire type.
func cutWireField(b []byte) (f wireField, rest []byte, ok bool) {
	tag, n := binary.Uvarint(b)
	if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return f, nil, false
	}
	f.tag, b = tag, b[n:]
	switch tag & 7 {
	case wireVarint:
		f.number, n = binary.Uvarint(b)
		if n <= 0 {
			return f, nil, false
		}
		return f, b[n:], true
	case wireBytes:
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) { //nolint:gosec // n is at most len(b)
			return f, nil, false
		}
		end := n + int(size) //nolint:gosec // bounded by len(b)
		f.bytes = b[n:end:end]
		return f, b[end:], true
	case wireFixed64:
		return f, b[min(8, len(b)):], len(b) >= 8
	case wireFixed32:
		return f, b[min(4, len(b)):], len(b) >= 4
	default:
		return f, nil, false
	}
}

// grpcStatuses maps the codes of gRPC to the HTTP statuses with the same meaning, as the
// Connect protocol and gRPC's own gateways do, except for CANCELLED: a client that
// cancels does not cancel a run, so a handler that returns it was stopped by the server,
// and did not finish.
var grpcStatuses = [...]int{
	0:  200, // OK
	1:  503, // CANCELLED
	2:  500, // UNKNOWN
	3:  400, // INVALID_ARGUMENT
	4:  504, // DEADLINE_EXCEEDED
	5:  404, // NOT_FOUND
	6:  409, // ALREADY_EXISTS
	7:  403, // PERMISSION_DENIED
	8:  429, // RESOURCE_EXHAUSTED
	9:  400, // FAILED_PRECONDITION
	10: 409, // ABORTED
	11: 400, // OUT_OF_RANGE
	12: 501, // UNIMPLEMENTED
	13: 500, // INTERNAL
	14: 503, // UNAVAILABLE
	15: 500, // DATA_LOSS
	16: 401, // UNAUTHENTICATED
}

// The codes of gRPC that problems have. None is ALREADY_EXISTS, because programs take
// that for success, and only a problem that may pass with the same key is ABORTED or
// UNAVAILABLE, which programs retry.
const (
	grpcUnknown            = 2
	grpcInvalidArgument    = 3
	grpcPermissionDenied   = 7
	grpcResourceExhausted  = 8 // as for gRPC's own limits
	grpcFailedPrecondition = 9
	grpcAborted            = 10
	grpcInternal           = 13
	grpcUnavailable        = 14
	grpcDataLoss           = 15
)

// grpcCode returns code, and UNKNOWN for one that gRPC does not have.
func grpcCode(code uint32) uint32 {
	if code < uint32(len(grpcStatuses)) {
		return code
	}
	return grpcUnknown
}

// codeOfStatus returns the code of gRPC for the status of a response that no call made.
func codeOfStatus(status int) uint32 {
	switch status {
	case 409, 412, 422:
		return grpcFailedPrecondition
	case 500:
		return grpcInternal
	case 502, 503:
		return grpcUnavailable
	}
	for code, stands := range grpcStatuses {
		if stands == status && code != 0 {
			return uint32(code)
		}
	}
	return grpcUnknown
}
