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
