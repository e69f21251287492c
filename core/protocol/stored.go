package protocol

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"unsafe"

	"github.com/reprise-go/reprise/core/store"
)

// The limits of a stored response: the number of fields, the bytes of their names and
// values, and the bytes of the annotation.
const (
	maxStoredFields      = 64
	maxStoredHeaderBytes = 16 << 10
	maxAnnotation        = 255
)

// storedFlags are the special properties of a stored response.
type storedFlags uint8

const (
	// storedOmitted: the response was complete, but its body was not kept, because it was
	// over the limit or because the handler decided so.
	storedOmitted storedFlags = 1 << iota

	// storedCut: there is no complete response. It was cut short, its connection was
	// hijacked, the handler panicked after its first byte, or a part of it cannot be
	// kept.
	storedCut

	_ // not used: a sealed response is an envelope, see envelope.go

	// storedOffloaded: the response is complete, and its body is a blob. The record has a
	// [BlobRef] in its place.
	storedOffloaded

	storedKnown  = storedOmitted | storedCut | storedOffloaded
	storedNoBody = storedOmitted | storedCut
)

// stored is a response as a record keeps it. To encode one, set fields and trailers;
// decoding sets header and trailer.
type stored struct {
	status int // 200 to 999
	flags  storedFlags

	header, trailer  Header
	fields, trailers []Field

	body []byte  // none if flags has storedOmitted, storedCut or storedOffloaded
	blob BlobRef // with storedOffloaded

	annotation string // of Config.Annotate; empty: none
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
	storedVersion   = 1
	storedAnnotated = 2 // the version of a response with an annotation
	storedHeadSize  = 1 + 1 + 2 + 2 + 4 + 4
	storedFieldSize = 1 + 2 + 2
	storedSumSize   = 4
)

// The kinds of a stored field.
const (
	kindReplace    = 0
	kindAdd        = 1
	kindRemove     = 2 // without a value
	kindTrailer    = 3
	kindTrailerAdd = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// What can be wrong with a stored response. The errors are made once, so that refusing
// garbage costs nothing.
var (
	errStoredVersion = corrupt("has a version that this release does not know")
	errStoredFlags   = corrupt("has flags that this release does not know")
	errStoredLength  = corrupt("does not have its declared length")
	errStoredSum     = corrupt("has a wrong checksum")
	errStoredStatus  = corrupt("has an invalid status")
	errStoredLimit   = corrupt("has more fields than are ever kept")
	errStoredField   = corrupt("has an invalid field")
	errStoredBody    = corrupt("has a body although its flags say that it has none")
	errStoredNote    = corrupt("has an invalid annotation")
	errStoredBlob    = corrupt("has an invalid reference to a blob")
)

func corrupt(what string) error {
	return fmt.Errorf("%w: the stored response %s", store.ErrCorrupt, what)
}

// fitsStored reports whether fields are few and small enough to be stored.
func fitsStored(fields []Field) bool {
	size := 0
	for i := range fields {
		size += len(fields[i].Name) + len(fields[i].Value)
	}
	return len(fields) <= maxStoredFields && size <= maxStoredHeaderBytes
}

// keepsBody reports whether a stored response with these flags has a body.
func (f storedFlags) keepsBody() bool { return f&(storedNoBody|storedOffloaded) == 0 }

// size returns how many bytes [appendStored] appends.
func (s *stored) size() int {
	size := s.headSize() + storedSumSize
	switch {
	case s.flags.keepsBody():
		size += len(s.body)
	case s.flags&storedOffloaded != 0:
		size += s.blob.size()
	}
	return size
}

// headSize returns how many of the encoded bytes come before the body.
func (s *stored) headSize() int {
	size := storedHeadSize + s.fieldsSize()
	if s.annotation != "" {
		size += 1 + len(s.annotation)
	}
	return size
}

func (s *stored) fieldsSize() int {
	size := storedFieldSize * (len(s.fields) + len(s.trailers))
	for _, list := range [...][]Field{s.fields, s.trailers} {
		for i := range list {
			size += len(list[i].Name) + len(list[i].Value)
		}
	}
	return size
}

// appendStored appends the encoded form of s to dst. It does not allocate if dst has room
// for s.size() bytes. The caller has checked the range of the status, filtered the fields
// with [fieldPolicy.filter] and checked them with [fitsStored], and the annotation with
// [validAnnotation]. The flags say whether the body, a reference or neither is written.
func appendStored(dst []byte, s *stored) []byte {
	body := s.body
	var ref [blobRefSize + blobKeySize]byte
	switch {
	case s.flags&storedOffloaded != 0:
		body = s.blob.append(ref[:0])
	case !s.flags.keepsBody():
		body = nil
	}
	start, version := len(dst), byte(storedVersion)
	if s.annotation != "" {
		version = storedAnnotated
	}
	dst = append(dst, version, byte(s.flags))
	dst = append16(dst, s.status)
	dst = append16(dst, len(s.fields)+len(s.trailers))
	dst = append32(dst, s.fieldsSize())
	dst = append32(dst, len(body))
	if s.annotation != "" {
		dst = append(dst, byte(len(s.annotation))) //nolint:gosec // validAnnotation bounds it
		dst = append(dst, s.annotation...)
	}
	for i := range s.fields {
		dst = appendField(dst, &s.fields[i], kindReplace)
	}
	for i := range s.trailers {
		dst = appendField(dst, &s.trailers[i], kindTrailer)
	}
	dst = append(dst, body...)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// appendField appends a field of the kind, or of the one after it if the field is added.
func appendField(dst []byte, f *Field, kind byte) []byte {
	switch {
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
	return binary.BigEndian.AppendUint16(dst, uint16(n)) //nolint:gosec // fitsStored and the range of the status bound it
}

func append32(dst []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(n)) //nolint:gosec // store.MaxPayload bounds it
}

// decodeStored reads what [appendStored] wrote. A record is untrusted input: everything
// is checked here, so that readers of the result need not. The header and the body are
// views into payload, which must not be modified from then on. It never allocates. The
// error wraps [store.ErrCorrupt].
func decodeStored(payload []byte) (stored, error) {
	if len(payload) == 0 || payload[0] != storedVersion && payload[0] != storedAnnotated {
		return stored{}, errStoredVersion
	}
	if len(payload) < storedHeadSize+storedSumSize {
		return stored{}, errStoredLength
	}
	content, sum := payload[:len(payload)-storedSumSize], payload[len(payload)-storedSumSize:]
	if crc32.Checksum(content, castagnoli) != binary.BigEndian.Uint32(sum) {
		return stored{}, errStoredSum
	}
	s := stored{flags: storedFlags(content[1]), status: int(binary.BigEndian.Uint16(content[2:]))}
	if s.flags&^storedKnown != 0 || s.flags&storedOffloaded != 0 && s.flags != storedOffloaded {
		return stored{}, errStoredFlags
	}
	if s.status < 200 || s.status > 999 {
		return stored{}, errStoredStatus
	}
	fields := int(binary.BigEndian.Uint16(content[4:]))
	fieldsSize, bodySize := uint64(binary.BigEndian.Uint32(content[6:])), uint64(binary.BigEndian.Uint32(content[10:]))
	content = content[storedHeadSize:]
	if payload[0] == storedAnnotated {
		note, rest, ok := cutAnnotation(content)
		if !ok {
			return stored{}, errStoredNote
		}
		s.annotation, content = note, rest
	}
	if uint64(len(content)) != fieldsSize+bodySize {
		return stored{}, errStoredLength
	}
	section, body := content[:fieldsSize], content[fieldsSize:len(content):len(content)] // appending to the body copies it
	// A string without a copy is sound because payloads are immutable; see
	// ClaimResult.Payload.
	view := unsafe.String(unsafe.SliceData(section), len(section)) //nolint:gosec // bounded by the slice itself
	header, trailers, err := checkFields(view, fields)
	if err != nil {
		return stored{}, err
	}
	switch {
	case s.flags == storedOffloaded:
		var ok bool
		if s.blob, ok = decodeBlobRef(body); !ok || !allowsBody(s.status) || trailers > 0 {
			return stored{}, errStoredBlob
		}
		body = nil
	case len(body) > 0 && !s.flags.keepsBody():
		return stored{}, errStoredBody
	}
	s.header = Header{view: view[:header], viewed: fields - trailers}
	s.trailer = Header{view: view[header:], viewed: trailers}
	s.body = body
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
	note = unsafe.String(unsafe.SliceData(text), len(text)) //nolint:gosec // as in decodeStored
	return note, rest, note != "" && validAnnotation(note)
}

// validAnnotation reports whether note can be kept beside a response.
func validAnnotation(note string) bool { return len(note) <= maxAnnotation && printable(note) }

// checkFields checks that section is exactly n fields, within the limits, that can be
// sent and that a guard may have written. It returns the length of the fields that are no
// trailers, and the number of trailers.
func checkFields(section string, n int) (header, trailers int, err error) {
	if n > maxStoredFields || len(section) > maxStoredHeaderBytes+n*storedFieldSize {
		return 0, 0, errStoredLimit
	}
	for range n {
		isTrailer := section != "" && section[0] >= kindTrailer
		f, rest, ok := cutField(section)
		switch {
		case !ok:
			return 0, 0, errStoredLength
		case !validField(f.Name, f.Value), f.Remove && f.Value != "", trailers > 0 && !isTrailer, !f.Remove && isForged(f.Name):
			return 0, 0, errStoredField
		case isTrailer:
			trailers++
		default:
			header += len(section) - len(rest)
		}
		section = rest
	}
	if section != "" {
		return 0, 0, errStoredLength
	}
	return header, trailers, nil
}

// isForged reports whether no guard can have written a field called name: no release
// keeps cookies, or the fields that say where a message ends. A later release may add to
// what is never kept, so other fields of that list are no sign of a forged record.
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
	if len(section) < storedFieldSize || section[0] > kindTrailerAdd {
		return Field{}, "", false
	}
	kind := section[0]
	name := int(section[1])<<8 | int(section[2])
	value := int(section[3])<<8 | int(section[4])
	rest = section[storedFieldSize:]
	if len(rest) < name+value {
		return Field{}, "", false
	}
	return Field{
		Name: rest[:name], Value: rest[name : name+value],
		Add: kind == kindAdd || kind == kindTrailerAdd, Remove: kind == kindRemove,
	}, rest[name+value:], true
}
