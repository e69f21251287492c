package job

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// keptKind is the kind of a record of [Do].
type keptKind uint8

// The kinds. They are kept in records: see docs/engineering/adr/0019-do.md.
const (
	keptValue    keptKind = iota + 1 // a value, as the codec encoded it
	keptAnswer                       // an error that fn returned with Keep
	keptFailure                      // another error, which AtMostOnce keeps
	keptPanic                        // fn panicked, under AtMostOnce; without content
	keptNothing                      // the operation ended, and its value or error could not be encoded; without content
	lastKeptKind = keptNothing
)

// The layout of a record of [Do], with a big-endian checksum:
//
//	u8 0xD0 ‖ u8 version 1 ‖ u8 kind ‖ content ‖ u32 CRC-32C of everything before it
//
// No stored response of the package protocol begins with 0xD0, and a record of Do always
// does: a guard that meets a record of Do, or Do one of a guard, calls it corrupt.
const (
	keptMark     = 0xD0
	keptVersion  = 1
	keptHeadSize = 3
	keptSumSize  = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errKeptMark    = corrupt("is not one of Do")
	errKeptVersion = corrupt("has a version that this release does not know")
	errKeptLength  = corrupt("is cut short")
	errKeptSum     = corrupt("has a wrong checksum")
	errKeptKind    = corrupt("is of a kind that this release does not know")
	errKeptContent = corrupt("has content that its kind does not have")
)

func corrupt(what string) error { return fmt.Errorf("%w: the result %s", store.ErrCorrupt, what) }

// appendKept returns the payload for a record.
func appendKept(kind keptKind, content []byte) []byte {
	payload := make([]byte, 0, keptHeadSize+len(content)+keptSumSize)
	payload = append(payload, keptMark, keptVersion, byte(kind))
	payload = append(payload, content...)
	return binary.BigEndian.AppendUint32(payload, crc32.Checksum(payload, castagnoli))
}

// cutKept splits a payload. The error wraps ErrCorrupt.
func cutKept(payload []byte) (keptKind, []byte, error) {
	switch {
	case len(payload) == 0 || payload[0] != keptMark:
		return 0, nil, errKeptMark
	case len(payload) < keptHeadSize+keptSumSize:
		return 0, nil, errKeptLength
	case payload[1] != keptVersion:
		return 0, nil, errKeptVersion
	}
	end := len(payload) - keptSumSize
	if crc32.Checksum(payload[:end], castagnoli) != binary.BigEndian.Uint32(payload[end:]) {
		return 0, nil, errKeptSum
	}
	kind, content := keptKind(payload[2]), payload[keptHeadSize:end:end]
	switch {
	case kind < keptValue || kind > lastKeptKind:
		return 0, nil, errKeptKind
	case kind >= keptPanic && len(content) > 0:
		return 0, nil, errKeptContent
	}
	return kind, content, nil
}

// DescribeResult describes the payload of a record of [Do], without its content, for
// programs that show records: "unreadable" for one that no retry can read. It is empty
// for any other payload.
func DescribeResult(payload []byte) string {
	if len(payload) == 0 || payload[0] != keptMark {
		return ""
	}
	kind, content, err := cutKept(payload)
	if err != nil {
		return "unreadable"
	}
	text := keptTexts[kind]
	if kind <= keptFailure {
		text += " of " + strconv.Itoa(len(content)) + " bytes"
	}
	return text
}

var keptTexts = [...]string{
	keptValue: "a value", keptAnswer: "an error that is the answer", keptFailure: "a failure",
	keptPanic: "a panic", keptNothing: "no result: it could not be encoded",
}

// EncodeResult returns the payload of a record of [Do], for its other writers: an
// operator who resolves a lapsed record (see [store.Inspector]), or a function that
// completes its operation in its own transaction. It keeps value if err is nil, and
// otherwise err: as the result of the operation if it was made by [Keep], and as a
// failure if not. An error of EncodeResult wraps [ErrUnkept]: the codec could not write
// the result, or not read it again. A nil codec is JSON.
func EncodeResult[T any](codec Codec[T], value T, err error) ([]byte, error) {
	payload, _, failed := encodeResult(orJSON(codec), value, err)
	return payload, failed
}

// DecodeResult returns the result in the payload of a record, as a retry gets it from
// [Do]. A kept error is a [*DoError]. An error that wraps [store.ErrCorrupt] says that
// the payload is unreadable. A nil codec is JSON; [Bytes] returns the stored value.
func DecodeResult[T any](codec Codec[T], payload []byte) (T, error) {
	r, err := decodeResult(orJSON(codec), payload)
	if err != nil {
		var zero T
		return zero, err
	}
	return r.value, r.replayError()
}

// result is the result of an operation of [Do].
type result[T any] struct {
	kind  keptKind
	value T     // of keptValue
	err   error // of the other kinds
}

// replayError returns the error that a caller gets who finds the result in a record.
func (r *result[T]) replayError() error {
	if r.err == nil {
		return nil
	}
	return &DoError{Outcome: reprise.Replayed, Kept: true, Answer: r.kind == keptAnswer, Err: r.err}
}

// encodeResult encodes the result of fn, and returns it as a retry reads it.
func encodeResult[T any](codec Codec[T], value T, err error) (payload []byte, read result[T], failed error) {
	var content []byte
	kind := keptValue
	if err != nil {
		kind = keptFailure
		if decisionOf(err) == keepError {
			kind = keptAnswer
		}
		content, failed = encodeError(errorCodecOf(codec), undecided(err))
	} else {
		content, failed = encodeValue(codec, value)
	}
	if failed == nil && len(content) > store.MaxPayload-keptHeadSize-keptSumSize {
		failed = fmt.Errorf("it has %d bytes, want %d at most", len(content), store.MaxPayload-keptHeadSize-keptSumSize)
	}
	if failed != nil {
		return nil, read, fmt.Errorf("%w: it was not encoded: %w", ErrUnkept, failed)
	}
	payload = appendKept(kind, content)
	if read, failed = decodeResult(codec, payload); failed != nil {
		return nil, read, fmt.Errorf("%w: a retry could not read it: %v", ErrUnkept, failed) //nolint:errorlint // nothing is corrupt
	}
	return payload, read, nil
}

func encodeValue[T any](codec Codec[T], value T) (data []byte, err error) {
	defer recoverCodec(&err)
	return codec.Encode(value)
}

func encodeError(codec ErrorCodec, kept error) (data []byte, err error) {
	defer recoverCodec(&err)
	return codec.EncodeError(kept)
}

// decodeResult reads a payload. The error wraps ErrCorrupt.
func decodeResult[T any](codec Codec[T], payload []byte) (r result[T], err error) {
	kind, content, err := cutKept(payload)
	if err != nil {
		return r, err
	}
	r.kind = kind
	switch kind {
	case keptValue:
		r.value, err = decodeValue(codec, content)
	case keptAnswer, keptFailure:
		r.err, err = decodeError(errorCodecOf(codec), content)
	case keptPanic:
		r.err = ErrPanicked
	case keptNothing:
		r.err = ErrUnkept
	}
	if err != nil {
		return result[T]{}, fmt.Errorf("%w: the codec cannot read the result: %w", store.ErrCorrupt, err)
	}
	return r, nil
}

func decodeValue[T any](codec Codec[T], data []byte) (value T, err error) {
	defer recoverCodec(&err)
	return codec.Decode(data)
}

func decodeError(codec ErrorCodec, data []byte) (kept, err error) {
	defer recoverCodec(&err)
	kept, err = codec.DecodeError(data)
	if err == nil && kept == nil {
		err = errors.New("it made no error of a kept error")
	}
	return kept, err
}
