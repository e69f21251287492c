package protocol

import (
	"bytes"
	"strings"
)

// The fields with which the protocol itself speaks. A handler cannot set them: they are removed from what it wrote.
const (
	fieldReplayed = "Idempotent-Replayed" // "true" on a replay
	fieldStatus   = "Idempotency-Status"  // "unrecorded" or "unprotected"
	fieldBody     = "Idempotency-Body"    // "omitted" where the body was not kept
)

// IsControlField reports whether name, in any case, is a field with which the protocol itself speaks. An adapter whose framework holds
// the response as a whole removes what a handler set of them (R11); a [Recorder] does it by itself.
func IsControlField(name string) bool {
	return strings.EqualFold(name, fieldReplayed) || strings.EqualFold(name, fieldStatus) || strings.EqualFold(name, fieldBody)
}

// isNeverKept reports whether a response field belongs to one exchange, one connection, one hop or one client, so that repeating
// it in a replay would be wrong or unsafe.
func isNeverKept(lower []byte) bool {
	switch string(lower) {
	case "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "alt-svc", // the connection, RFC 9110 section 7.6.1
		"age", "content-length", "date", "ratelimit", "server-timing", // computed for each response
		"set-cookie", "strict-transport-security", "www-authenticate", // credentials and what asks for them
		"b3", "traceparent", "tracestate", "x-amzn-trace-id", "x-correlation-id", "x-request-id", // one request in a trace
		"idempotency-body", "idempotency-status", "idempotent-replayed": // the protocol's own
		return true
	}
	for _, family := range neverKeptFamilies {
		if bytes.HasPrefix(lower, family) {
			return true
		}
	}
	return false
}

// neverKeptFamilies are the prefixes of fields that are never kept. "trailer:" is how net/http's handlers announce a
// trailer field while they write the header.
var neverKeptFamilies = [][]byte{
	[]byte("access-control-"), []byte("proxy-"), []byte("ratelimit-"), []byte("trailer:"), []byte("x-b3-"),
}

// fieldPolicy decides which fields of a response are kept for its replays. The zero value keeps all but those that are
// never kept. It does not change after its construction and is safe for concurrent use.
type fieldPolicy struct {
	allow map[string]struct{} // in lower case; nil: no list
}

// newFieldPolicy returns the policy that keeps the fields called allow, in any case; an empty list keeps none, and nil
// keeps all. Either way some are never kept, and naming one of those is an error, as is a name that is no field name.
func newFieldPolicy(allow []string) (fieldPolicy, error) {
	if allow == nil {
		return fieldPolicy{}, nil
	}
	names := make(map[string]struct{}, len(allow))
	for _, name := range allow {
		lower := appendLower(nil, name)
		if !validName(name) {
			return fieldPolicy{}, invalid("KeepHeaders", "%q is not a field name", name)
		}
		if isNeverKept(lower) {
			return fieldPolicy{}, invalid("KeepHeaders", "the field %s is never kept", name)
		}
		names[string(lower)] = struct{}{}
	}
	return fieldPolicy{allow: names}, nil
}

// keeps reports whether the field called name, in any case, is kept. It does not allocate for names of up to 64 bytes.
func (p *fieldPolicy) keeps(name string) bool {
	var stack [64]byte
	lower := appendLower(stack[:0], name)
	if isNeverKept(lower) {
		return false
	}
	if p.allow == nil {
		return true
	}
	_, ok := p.allow[string(lower)]
	return ok
}

// filter appends to dst the fields of src that are kept, and counts the Set-Cookie lines that are not. It drops what the
// policy does not keep, what a Connection field of src names, and what cannot be sent (see [validField]). It does not
// allocate where dst has room. dst and src must not overlap.
func (p *fieldPolicy) filter(dst, src []Field) (kept []Field, setCookies int) {
	hopByHop := hasConnection(src)
	orphaned := "" // the field whose first value was dropped: its next one takes over the replacing
	for _, f := range src {
		switch {
		case !p.keeps(f.Name):
			if strings.EqualFold(f.Name, "Set-Cookie") {
				setCookies++
			}
		case hopByHop && connectionNames(src, f.Name):
		case !validField(f.Name, f.Value):
			if !f.Add {
				orphaned = f.Name
			}
		default:
			if orphaned != "" && strings.EqualFold(f.Name, orphaned) {
				f.Add, orphaned = false, ""
			}
			dst = append(dst, f)
		}
	}
	return dst, setCookies
}

func hasConnection(fields []Field) bool {
	for _, f := range fields {
		if isConnection(f.Name) {
			return true
		}
	}
	return false
}

// connectionNames reports whether a Connection field among fields names name, which makes it a matter of one hop.
func connectionNames(fields []Field, name string) bool {
	for _, f := range fields {
		if !isConnection(f.Name) {
			continue
		}
		for list := f.Value; list != ""; {
			var option string
			option, list, _ = strings.Cut(list, ",")
			if strings.EqualFold(trimSpace(option), name) {
				return true
			}
		}
	}
	return false
}

func isConnection(name string) bool { return strings.EqualFold(name, "Connection") }
