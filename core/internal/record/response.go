// Package record is the codec of the responses that records keep: their layout, their
// sealing, and the chunks of sealed blobs. It has pure functions over bytes, which know
// neither a policy nor a guard. Payloads are untrusted input, and validated.
package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"unsafe"

	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/store"
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

// The defects of a stored response. The errors are made once, so that to refuse garbage
// is cheap.
var (
	errVersion = Corrupt("has a version that this release does not know")
	errFlags   = Corrupt("has flags that this release does not know")
	errLength  = Corrupt("does not have its declared length")
	errSum     = Corrupt("has a wrong checksum")
	errStatus  = Corrupt("has an invalid status")
	errLimit   = Corrupt("has more fields than are ever kept")
	errField   = Corrupt("has an invalid field")
	errBody    = Corrupt("has a body although its flags say that it has none")
	errNote    = Corrupt("has an invalid annotation")
	errBlob    = Corrupt("has an invalid reference to a blob")
)

// Corrupt returns the error for a stored response that cannot be read: the end of the
// sentence "the stored response …". It wraps [store.ErrCorrupt].
func Corrupt(what string) error {
	return fmt.Errorf("%w: the stored response %s", store.ErrCorrupt, what)
}

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

// Decode parses the result of [Append]. A record is untrusted input: it is validated
// here, so that readers of the result need not. The header and the body are views into
// payload, which must not be modified from then on. It never allocates. The error wraps
// [store.ErrCorrupt].
func Decode[F AnyField](payload []byte) (Response[F], error) {
	if len(payload) == 0 || payload[0] != version && payload[0] != annotatedVersion {
		return Response[F]{}, errVersion
	}
	if len(payload) < headSize+sumSize {
		return Response[F]{}, errLength
	}
	content, sum := payload[:len(payload)-sumSize], payload[len(payload)-sumSize:]
	if crc32.Checksum(content, castagnoli) != binary.BigEndian.Uint32(sum) {
		return Response[F]{}, errSum
	}
	s := Response[F]{Flags: Flags(content[1]), Status: int(binary.BigEndian.Uint16(content[2:]))}
	if s.Flags&^knownFlags != 0 || s.Flags&Offloaded != 0 && s.Flags != Offloaded {
		return Response[F]{}, errFlags
	}
	if s.Status < 200 || s.Status > 999 {
		return Response[F]{}, errStatus
	}
	fields := int(binary.BigEndian.Uint16(content[4:]))
	fieldsSize, bodySize := uint64(binary.BigEndian.Uint32(content[6:])), uint64(binary.BigEndian.Uint32(content[10:]))
	content = content[headSize:]
	if payload[0] == annotatedVersion {
		note, rest, ok := cutAnnotation(content)
		if !ok {
			return Response[F]{}, errNote
		}
		s.Annotation, content = note, rest
	}
	if uint64(len(content)) != fieldsSize+bodySize {
		return Response[F]{}, errLength
	}
	section, body := content[:fieldsSize], content[fieldsSize:len(content):len(content)] // appending to the body copies it
	// A string without a copy is sound because payloads are immutable; see
	// ClaimResult.Payload.
	view := unsafe.String(unsafe.SliceData(section), len(section)) //nolint:gosec // bounded by the slice itself
	header, trailers, err := checkFields(view, fields)
	if err != nil {
		return Response[F]{}, err
	}
	switch {
	case s.Flags == Offloaded:
		var ok bool
		if s.Blob, ok = decodeBlob(body); !ok || !syntax.AllowsBody(s.Status) || trailers > 0 {
			return Response[F]{}, errBlob
		}
		body = nil
	case len(body) > 0 && !s.Flags.keepsBody():
		return Response[F]{}, errBody
	}
	s.Header = Section{view[:header], fields - trailers}
	s.Trailer = Section{view[header:], trailers}
	s.Body = body
	return s, nil
}

// cutAnnotation reads the annotation at the start of content and returns the rest. ok is
// false if there is none, or an invalid one.
func cutAnnotation(content []byte) (note string, rest []byte, ok bool) {
	if len(content) == 0 || int(content[0]) > len(content)-1 {
		return "", nil, false
	}
	end := 1 + int(content[0])
	text, rest := content[1:end], content[end:]
	note = unsafe.String(unsafe.SliceData(text), len(text)) //nolint:gosec // as in Decode
	return note, rest, note != "" && ValidAnnotation(note)
}

// ValidAnnotation reports whether note can be kept beside a response.
func ValidAnnotation(note string) bool { return len(note) <= maxAnnotation && syntax.Printable(note) }

// checkFields checks that section is exactly n fields, within the limits, that can be
// sent and that a guard may have written. It returns the length of the fields that are no
// trailers, and the number of trailers.
func checkFields(section string, n int) (header, trailers int, err error) {
	if n > MaxFields || len(section) > MaxHeaderBytes+n*fieldSize {
		return 0, 0, errLimit
	}
	for range n {
		isTrailer := section != "" && (section[0] == kindTrailer || section[0] == kindTrailerAdd)
		f, rest, ok := cutField(section)
		switch {
		case !ok:
			return 0, 0, errLength
		case !syntax.ValidField(f.Name, f.Value), f.Remove && f.Value != "", trailers > 0 && !isTrailer, !f.Remove && isForged(f.Name):
			return 0, 0, errField
		case isTrailer:
			trailers++
		default:
			header += len(section) - len(rest)
		}
		section = rest
	}
	if section != "" {
		return 0, 0, errLength
	}
	return header, trailers, nil
}

// isForged reports whether no guard can have written a field called name: no release
// keeps cookies, or the fields that say where a message ends. A later release may add
// fields that are never kept, so other fields of that list are no sign of a forged
// record.
func isForged(name string) bool {
	switch len(name) {
	case 2:
		return strings.EqualFold(name, "TE")
	case 7:
		return strings.EqualFold(name, "Trailer") || strings.EqualFold(name, "Upgrade")
	case 10:
		return strings.EqualFold(name, "Connection") || strings.EqualFold(name, "Keep-Alive") || strings.EqualFold(name, "Set-Cookie")
	case 14:
		return strings.EqualFold(name, "Content-Length")
	case 17:
		return strings.EqualFold(name, "Transfer-Encoding")
	default:
		return false
	}
}

// cutField reads the first field of section and returns the rest. ok is false if section
// does not start with a complete field.
func cutField(section string) (f Field, rest string, ok bool) {
	if len(section) < fieldSize || section[0] > kindSuppress {
		return Field{}, "", false
	}
	kind := section[0]
	name := int(section[1])<<8 | int(section[2])
	value := int(section[3])<<8 | int(section[4])
	rest = section[fieldSize:]
	if len(rest) < name+value {
		return Field{}, "", false
	}
	return Field{
		Name: rest[:name], Value: rest[name : name+value],
		Add: kind == kindAdd || kind == kindTrailerAdd, Remove: kind == kindRemove || kind == kindSuppress, Suppress: kind == kindSuppress,
	}, rest[name+value:], true
}
