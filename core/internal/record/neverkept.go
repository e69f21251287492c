package record

import (
	"bytes"
	"strings"

	"github.com/reprise-go/reprise/core/internal/syntax"
)

// The names of the control fields that a guard uses.
const (
	FieldReplayed = "Idempotent-Replayed"
	FieldStatus   = "Idempotency-Status"
	FieldBody     = "Idempotency-Body"
	FieldExpires  = "Idempotency-Key-Expires"
)

// IsControlField reports whether only the protocol sets the field called name, in any
// case. A handler may set FieldExpires.
func IsControlField(name string) bool {
	return strings.EqualFold(name, FieldReplayed) || strings.EqualFold(name, FieldStatus) || strings.EqualFold(name, FieldBody)
}

// IsNeverKept reports whether a response field called name, in any case, belongs to one
// response, one connection, one hop or one client, so that repeating it in a replay would
// be wrong or unsafe. It does not allocate for names of up to 64 bytes.
func IsNeverKept(name string) bool {
	var stack [64]byte
	return LowerIsNeverKept(syntax.AppendLower(stack[:0], name))
}

// LowerIsNeverKept is [IsNeverKept] of a name in lower case.
func LowerIsNeverKept(lower []byte) bool {
	switch string(lower) {
	case "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "alt-svc", // the connection, RFC 9110 section 7.6.1
		"age", "content-length", "date", "ratelimit", "server-timing", // computed for each response
		"set-cookie", "strict-transport-security", "www-authenticate", "authentication-info", "dpop-nonce", // credentials, and challenges for them
		"b3", "traceparent", "tracestate", "x-amzn-trace-id", "x-correlation-id", "x-request-id": // one request in a trace
		return true
	}
	for _, family := range neverKeptFamilies {
		if bytes.HasPrefix(lower, family) {
			return true
		}
	}
	return false
}

// neverKeptFamilies are the prefixes of fields that are never kept. With "trailer:"
// handlers of net/http mark a trailer field in the header map.
var neverKeptFamilies = [][]byte{
	[]byte("access-control-"), []byte("proxy-"), []byte("ratelimit-"), []byte("trailer:"), []byte("x-b3-"),
	[]byte("x-rate-limit-"), []byte("x-ratelimit-"),
}
