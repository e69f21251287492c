package job

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A Codec turns the values that [Do] keeps into bytes, and back; a nil one is that of
// [encoding/json]. One that keeps errors too is an [ErrorCodec]. Its methods are safe for
// concurrent use.
type Codec[T any] interface {
	// Encode returns the bytes to keep, up to [store.MaxPayload] less a few. They are read
	// at once, so they may be a part of value.
	Encode(value T) ([]byte, error)

	// Decode returns the value in data. It must not modify data, nor return a view of data
	// that its caller could modify: other callers read the same bytes. It must read the data
	// of every release of the service whose records are kept.
	Decode(data []byte) (T, error)
}

// An ErrorCodec is a [Codec] that also keeps the errors of an operation, so that
// [errors.Is] and [errors.As] give the same result in a retry as in the first run. Of an
// error that a codec without these methods keeps, only the text is left; see also
// [NamedErrors].
type ErrorCodec interface {
	EncodeError(err error) ([]byte, error)
	DecodeError(data []byte) (kept, err error)
}

// jsonCodec is the codec of [Do] where it is given none.
type jsonCodec[T any] struct{}

func (jsonCodec[T]) Encode(value T) ([]byte, error) { return json.Marshal(value) }

func (jsonCodec[T]) Decode(data []byte) (value T, err error) {
	err = json.Unmarshal(data, &value)
	return value, err
}

// Bytes returns the codec that keeps bytes as they are. Each caller gets its own copy.
func Bytes() Codec[[]byte] { return bytesCodec{} }

type bytesCodec struct{}

func (bytesCodec) Encode(value []byte) ([]byte, error) { return value, nil }

func (bytesCodec) Decode(data []byte) ([]byte, error) { return append([]byte{}, data...), nil }

// NamedErrors returns codec, or that of JSON for nil, as an [ErrorCodec] that knows
// some errors by name:
//
//	codec := job.NamedErrors[Receipt](nil, map[string]error{"sold-out": ErrSoldOut})
//
// An error for which [errors.Is] finds ErrSoldOut is kept as this name and its text. A
// retry gets an error with that text, for which errors.Is finds ErrSoldOut again. Of
// errors without a name the text is kept; so it is of those whose name a later release
// does not have. Names are kept in records: do not give one to another error.
func NamedErrors[T any](codec Codec[T], named map[string]error) Codec[T] {
	return namedErrors[T]{Codec: orJSON(codec), named: maps.Clone(named)}
}

type namedErrors[T any] struct {
	Codec[T]
	named map[string]error
}

// EncodeError implements [ErrorCodec]:
//
//	varint(length of the name) ‖ name ‖ text
//
// with an empty name where there is none.
func (c namedErrors[T]) EncodeError(err error) ([]byte, error) {
	name := ""
	for _, n := range slices.Sorted(maps.Keys(c.named)) { // always the same, where several fit
		if errors.Is(err, c.named[n]) {
			name = n
			break
		}
	}
	data := binary.AppendUvarint(nil, uint64(len(name)))
	data = append(data, name...)
	return append(data, err.Error()...), nil
}

// DecodeError implements [ErrorCodec].
func (c namedErrors[T]) DecodeError(data []byte) (kept, err error) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(len(data)-size) || size != len(binary.AppendUvarint(nil, n)) { //nolint:gosec // size is not more than len(data)
		return nil, errors.New("the name of a kept error is cut short")
	}
	name, text := data[size:size+int(n)], data[size+int(n):] //nolint:gosec // n was compared
	if is := c.named[string(name)]; is != nil {
		return &namedError{text: string(text), is: is}, nil
	}
	return errors.New(string(text)), nil
}

// namedError is a kept error with a name.
type namedError struct {
	text string
	is   error
}

func (e *namedError) Error() string { return e.text }

func (e *namedError) Unwrap() error { return e.is }

func orJSON[T any](codec Codec[T]) Codec[T] {
	if codec == nil {
		return jsonCodec[T]{}
	}
	return codec
}

// textOnly keeps errors for a codec that is not an [ErrorCodec].
type textOnly struct{}

func (textOnly) EncodeError(err error) ([]byte, error) { return []byte(err.Error()), nil }

func (textOnly) DecodeError(data []byte) (kept, err error) { return errors.New(string(data)), nil }

// errorCodecOf returns the codec of the errors for codec.
func errorCodecOf[T any](codec Codec[T]) ErrorCodec {
	if c, ok := codec.(ErrorCodec); ok {
		return c
	}
	return textOnly{}
}

// recoverCodec makes a panic of a codec an error. It is deferred.
func recoverCodec(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the codec panicked: %v", p)
	}
}
