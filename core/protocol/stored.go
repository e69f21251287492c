package protocol

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"unsafe"

	reprise "github.com/reprise-go/reprise/core"
)

// The limits of the header section of a stored response: how many fields, and how many bytes in their names and values.
const (
	maxStoredFields      = 64
	maxStoredHeaderBytes = 16 << 10
)

// storedFlags say what is special about a stored response.
type storedFlags uint8

const (
	// storedOmitted: the response was complete and its body was not kept, because it was over the limit or because the
	// handler said so.
	storedOmitted storedFlags = 1 << iota

	// storedCut: no complete response exists. It was cut short, its connection was hijacked, or the handler panicked
	// after its first byte.
	storedCut

	// storedSealed (encrypted) and storedOffloaded (the body is elsewhere) are reserved: this version writes neither, and
	// refuses both.
	storedSealed
	storedOffloaded

	storedKnown = storedOmitted | storedCut
)

// stored is a response as a record keeps it. To encode one, set fields; decoding sets header.
type stored struct {
	status int // 200 to 999
	flags  storedFlags
	header Header
	fields []Field
	body   []byte // none where flags has storedOmitted or storedCut
}

// The layout, version 1, with big-endian numbers; docs/adr/0003-stored-response.md explains it:
//
//	u8 version = 1 ‖ u8 flags ‖ u16 status ‖ u16 number of fields ‖ u32 length of the field section ‖ u32 length of the body
//	‖ field section ‖ body ‖ u32 CRC-32C of everything before it
//
// where each field is
//
//	u8 0 (replaces) or 1 (adds) ‖ u16 length of the name ‖ u16 length of the value ‖ name ‖ value
const (
	storedVersion   = 1
	storedHeadSize  = 1 + 1 + 2 + 2 + 4 + 4
	storedFieldSize = 1 + 2 + 2
	storedSumSize   = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// What can be wrong with a stored response. They are made once, so that refusing garbage costs nothing.
var (
	errStoredVersion = corrupt("has a version that this program does not know")
	errStoredFlags   = corrupt("has flags that this program does not know")
	errStoredLength  = corrupt("has not the length that it declares")
	errStoredSum     = corrupt("has a wrong checksum")
	errStoredStatus  = corrupt("has a status that is none")
	errStoredLimit   = corrupt("has more fields than are ever kept")
	errStoredField   = corrupt("has a field that cannot be sent")
	errStoredBody    = corrupt("has a body that its flags deny")
)

func corrupt(what string) error {
	return fmt.Errorf("%w: the stored response %s", reprise.ErrCorrupt, what)
}

// fitsStored reports whether fields are few and small enough to be stored.
func fitsStored(fields []Field) bool {
	size := 0
	for i := range fields {
		size += len(fields[i].Name) + len(fields[i].Value)
	}
	return len(fields) <= maxStoredFields && size <= maxStoredHeaderBytes
}

// keepsBody reports whether a stored response with these flags has its body.
func (f storedFlags) keepsBody() bool { return f&(storedOmitted|storedCut) == 0 }

// size returns how many bytes [appendStored] appends.
func (s *stored) size() int {
	size := storedHeadSize + s.fieldsSize() + storedSumSize
	if s.flags.keepsBody() {
		size += len(s.body)
	}
	return size
}

func (s *stored) fieldsSize() int {
	size := storedFieldSize * len(s.fields)
	for i := range s.fields {
		size += len(s.fields[i].Name) + len(s.fields[i].Value)
	}
	return size
}

// appendStored appends the encoded form of s to dst, without allocating where dst has room for s.size() bytes. The
// caller made sure that the status is in its range, that [fieldPolicy.filter] let the fields pass and that
// [fitsStored] holds. A body that the flags deny is left out.
func appendStored(dst []byte, s *stored) []byte {
	body := s.body
	if !s.flags.keepsBody() {
		body = nil
	}
	start := len(dst)
	dst = append(dst, storedVersion, byte(s.flags))
	dst = append16(dst, s.status)
	dst = append16(dst, len(s.fields))
	dst = append32(dst, s.fieldsSize())
	dst = append32(dst, len(body))
	for i := range s.fields {
		dst = appendField(dst, &s.fields[i])
	}
	dst = append(dst, body...)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

func appendField(dst []byte, f *Field) []byte {
	var add byte
	if f.Add {
		add = 1
	}
	dst = append(dst, add)
	dst = append16(dst, len(f.Name))
	dst = append16(dst, len(f.Value))
	dst = append(dst, f.Name...)
	return append(dst, f.Value...)
}

func append16(dst []byte, n int) []byte {
	return binary.BigEndian.AppendUint16(dst, uint16(n)) //nolint:gosec // fitsStored and the range of the status bound it
}

func append32(dst []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(n)) //nolint:gosec // reprise.MaxPayload bounds it
}

// decodeStored reads what [appendStored] wrote. A record is untrusted input: everything is checked here, so that nothing
// that reads the result later has to. The header and the body are views into payload, which nobody may modify from then
// on. It does not allocate, whatever payload is. The error wraps [reprise.ErrCorrupt].
func decodeStored(payload []byte) (stored, error) {
	if len(payload) == 0 || payload[0] != storedVersion {
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
	if s.flags&^storedKnown != 0 {
		return stored{}, errStoredFlags
	}
	if s.status < 200 || s.status > 999 {
		return stored{}, errStoredStatus
	}
	fields := int(binary.BigEndian.Uint16(content[4:]))
	fieldsSize, bodySize := uint64(binary.BigEndian.Uint32(content[6:])), uint64(binary.BigEndian.Uint32(content[10:]))
	content = content[storedHeadSize:]
	if uint64(len(content)) != fieldsSize+bodySize {
		return stored{}, errStoredLength
	}
	section, body := content[:fieldsSize], content[fieldsSize:len(content):len(content)] // whoever appends to the body, copies it
	// A string without a copy: sound because payloads are immutable, which ClaimResult.Payload says.
	view := unsafe.String(unsafe.SliceData(section), len(section)) //nolint:gosec // bounded by the slice itself
	if err := checkFields(view, fields); err != nil {
		return stored{}, err
	}
	if len(body) > 0 && !s.flags.keepsBody() {
		return stored{}, errStoredBody
	}
	s.header, s.body = Header{view: view, viewed: fields}, body
	return s, nil
}

// checkFields checks that section is exactly n fields, within the limits, that can be sent.
func checkFields(section string, n int) error {
	if n > maxStoredFields || len(section) > maxStoredHeaderBytes+n*storedFieldSize {
		return errStoredLimit
	}
	for range n {
		f, rest, ok := cutField(section)
		if !ok {
			return errStoredLength
		}
		if !validField(f.Name, f.Value) {
			return errStoredField
		}
		section = rest
	}
	if section != "" {
		return errStoredLength
	}
	return nil
}

// cutField reads the first field of section and returns what follows it. ok is false where section does not begin with a
// whole field.
func cutField(section string) (f Field, rest string, ok bool) {
	if len(section) < storedFieldSize || section[0] > 1 {
		return Field{}, "", false
	}
	name := int(section[1])<<8 | int(section[2])
	value := int(section[3])<<8 | int(section[4])
	rest = section[storedFieldSize:]
	if len(rest) < name+value {
		return Field{}, "", false
	}
	return Field{Add: section[0] == 1, Name: rest[:name], Value: rest[name : name+value]}, rest[name+value:], true
}
