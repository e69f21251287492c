// Package record is the codec of the responses that records keep: their layout, their
// sealing, and the chunks of sealed blobs. It has pure functions over bytes, which know
// neither a policy nor a guard. Payloads are untrusted input, and validated.
package record

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"

	"github.com/reprise-go/reprise/core/internal/syntax"
)

// The limits of a stored response: the number of fields, the bytes of their names and
// values, the bytes of the body, and those of the annotation.
const (
	MaxFields      = 64
	MaxHeaderBytes = 16 << 10
	MaxBody        = 63 << 20 // leaves room for the rest of a payload
	maxAnnotation  = 255
)

// SharedScope is the scope of the key space that all clients share. No principal has this
// name, because a name with a control byte is refused (R43).
const SharedScope = "\x00unscoped"

// Flags are the special properties of a stored response.
type Flags uint8

const (
	// Omitted says that the response was complete, but its body was not kept, because it was
	// over the limit or because the handler decided so.
	Omitted Flags = 1 << iota

	// Cut says that there is no complete response. It was cut short, its connection was
	// hijacked, the handler panicked after its first byte, or a part of it cannot be
	// kept.
	Cut

	_ // not used: a sealed response is an envelope, see envelope.go

	// Offloaded says that the response is complete, and its body is a blob. The record has a
	// [Blob] in its place.
	Offloaded

	knownFlags = Omitted | Cut | Offloaded
	noBody     = Omitted | Cut
)

// Field is one line of a header section, as protocol.Field is.
type Field struct {
	Name, Value           string
	Add, Remove, Suppress bool
}

// AnyField is a type with the members of [Field], which the codec converts to it.
type AnyField interface {
	~struct {
		Name, Value           string
		Add, Remove, Suppress bool
	}
}

// Response is a response as a record keeps it. To encode one, set Fields and Trailers;
// decoding sets Header and Trailer.
type Response[F AnyField] struct {
	Status int // 200 to 999
	Flags  Flags

	Header, Trailer  Section
	Fields, Trailers []F

	Body []byte // none if Flags has Omitted, Cut or Offloaded
	Blob Blob   // with Offloaded

	Annotation string // of Config.Keep.Annotate; empty: none
}

// Section is a list of fields as a view into the bytes of a response, already validated.
type Section struct {
	view string
	n    int
}

// Len returns the number of fields.
func (s Section) Len() int { return s.n }

// Next returns the first field of a section that is not empty, and the others.
func (s Section) Next() (Field, Section) {
	f, rest, _ := cutField(s.view)
	return f, Section{rest, s.n - 1}
}

// The layout, with big-endian numbers; docs/engineering/adr/0003-stored-response.md
// explains it:
//
//	u8 version ‖ u8 flags ‖ u16 status ‖ u16 number of fields ‖ u32 length of the field section ‖ u32 length of the body
//	‖ annotation ‖ field section ‖ body ‖ u32 CRC-32C of everything before it
//
// Version 1 has no annotation. In version 2, which is written only where there is one, it
// is
//
//	u8 length ‖ text
//
// Each field is
//
//	u8 kind ‖ u16 length of the name ‖ u16 length of the value ‖ name ‖ value
//
// and the kinds are the constants that begin with kind. Trailer fields come last.
const (
	version          = 1
	annotatedVersion = 2 // the version of a response with an annotation
	headSize         = 1 + 1 + 2 + 2 + 4 + 4
	fieldSize        = 1 + 2 + 2
	sumSize          = 4
)

// The kinds of a stored field.
const (
	kindReplace    = 0
	kindAdd        = 1
	kindRemove     = 2 // without a value
	kindTrailer    = 3
	kindTrailerAdd = 4
	kindSuppress   = 5 // a removal, after which the server fills in none
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Fits reports whether fields are few and small enough to be stored.
func Fits[F AnyField](fields []F) bool {
	size := 0
	for i := range fields {
		f := Field(fields[i])
		size += len(f.Name) + len(f.Value)
	}
	return len(fields) <= MaxFields && size <= MaxHeaderBytes
}

// keepsBody reports whether a stored response with these flags has a body.
func (f Flags) keepsBody() bool { return f&(noBody|Offloaded) == 0 }

// Size returns how many bytes [Append] appends.
func (s *Response[F]) Size() int {
	size := s.headSize() + sumSize
	switch {
	case s.Flags.keepsBody():
		size += len(s.Body)
	case s.Flags&Offloaded != 0:
		size += s.Blob.size()
	}
	return size
}

// headSize returns how many of the encoded bytes come before the body.
func (s *Response[F]) headSize() int {
	size := headSize + s.fieldsSize()
	if s.Annotation != "" {
		size += 1 + len(s.Annotation)
	}
	return size
}

func (s *Response[F]) fieldsSize() int {
	size := fieldSize * (len(s.Fields) + len(s.Trailers))
	for _, list := range [...][]F{s.Fields, s.Trailers} {
		for i := range list {
			f := Field(list[i])
			size += len(f.Name) + len(f.Value)
		}
	}
	return size
}

// Append appends the encoded form of s to dst. It does not allocate if dst has room
// for s.Size() bytes. The caller has checked the range of the status, filtered the fields
// with the policy of the guard and checked them with [Fits], and the annotation with
// [ValidAnnotation]. The flags say whether the body, a reference or neither is written.
func Append[F AnyField](dst []byte, s *Response[F]) []byte {
	body := s.Body
	var ref [blobSize + blobKeySize]byte
	switch {
	case s.Flags&Offloaded != 0:
		body = s.Blob.append(ref[:0])
	case !s.Flags.keepsBody():
		body = nil
	}
	start, version := len(dst), byte(version)
	if s.Annotation != "" {
		version = annotatedVersion
	}
	dst = append(dst, version, byte(s.Flags))
	dst = append16(dst, s.Status)
	dst = append16(dst, len(s.Fields)+len(s.Trailers))
	dst = append32(dst, s.fieldsSize())
	dst = append32(dst, len(body))
	if s.Annotation != "" {
		dst = append(dst, byte(len(s.Annotation))) //nolint:gosec // ValidAnnotation bounds it
		dst = append(dst, s.Annotation...)
	}
	for i := range s.Fields {
		dst = appendField(dst, Field(s.Fields[i]), kindReplace)
	}
	for i := range s.Trailers {
		dst = appendField(dst, Field(s.Trailers[i]), kindTrailer)
	}
	dst = append(dst, body...)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// appendField appends a field of the kind, or of the one after it if the field is added.
func appendField(dst []byte, f Field, kind byte) []byte {
	switch {
	case f.Suppress:
		kind = kindSuppress
	case f.Remove:
		kind = kindRemove
	case f.Add:
		kind++
	}
	dst = append(dst, kind)
	dst = append16(dst, len(f.Name))
	dst = append16(dst, len(f.Value))
	dst = append(dst, f.Name...)
	return append(dst, f.Value...)
}

func append16(dst []byte, n int) []byte {
	return binary.BigEndian.AppendUint16(dst, uint16(n)) //nolint:gosec // Fits and the range of the status bound it
}

func append32(dst []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(n)) //nolint:gosec // store.MaxPayload bounds it
}

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
