package operate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/protocol"
)

// The errors for records without a whole response. See [Decode].
var (
	// ErrBodyOmitted says that the body was not kept. Retries get the substitute of
	// Config.Oversize.
	ErrBodyOmitted = errors.New("reprise: the body of the response was not kept")

	// ErrResultUnavailable says that there is no response: it was cut short, or a part of
	// it cannot be kept. Retries get 409 result-unavailable.
	ErrResultUnavailable = errors.New("reprise: the response was not kept")

	// ErrSealed says that the response can be read only with the key of its client.
	ErrSealed = errors.New("reprise: the response is sealed, and can be read with the key of its client only")
)

// SharedScope is the scope of the records of a guard whose scope function returns
// [protocol.ErrUnscoped], for deriving their IDs ([store.DeriveID]).
const SharedScope = record.SharedScope

// Encode returns the payload of r, for an operator who resolves a record (see [Resolve]),
// for tests, and for programs that write records themselves.
//
// A response that a replay could not serve is refused, with an error that wraps
// [store.ErrInvalid] and names the mistake: a status outside of 200 to 999, a field that
// cannot be sent or is never kept (such as Content-Length, which every replay computes,
// or Set-Cookie), more than 64 fields or 16 KiB of them, a body of more than 63 MiB, and
// a body for a status that has none. [Decode] reads the result.
func Encode(r protocol.Response) ([]byte, error) {
	if r.Stream != nil {
		return nil, record.Refuse("the body is a stream")
	}
	s := record.Response[protocol.Field]{Status: r.Status, Body: r.Body, Fields: slices.Collect(r.Header.All()), Trailers: slices.Collect(r.Trailer.All())}
	return record.Encode(&s)
}

// Decode reads the payload of a record, with the checks of a replay. The response
// is that of a retry, without the fields that mark it as a replay. The error wraps
// [store.ErrCorrupt] for a payload whose retries get 500 record-corrupt.
//
// Some records have no whole response. Then the error wraps [ErrBodyOmitted], and the
// response has the status and the fields; or [ErrResultUnavailable], and it has only the
// status; or it is an [*OffloadedError], and the response has all but the body, and the
// Length of that.
//
// A response that is sealed (see [protocol.Sealing]) cannot be read without the client's
// key: then the error wraps [ErrSealed], and the response is empty, or, with
// Sealing.ClearHead, has the status and the fields, which are not verified.
// [protocol.Sealing.Open] opens it.
//
// The response is a view into payload, which must not be modified.
func Decode(payload []byte) (protocol.Response, error) {
	if record.IsSealed(payload) {
		return decodeSealed(payload)
	}
	s, err := record.Decode[protocol.Field](payload)
	switch {
	case err != nil:
		return protocol.Response{}, err
	case s.Flags&record.Cut != 0:
		return protocol.Response{Status: s.Status}, ErrResultUnavailable
	case s.Flags&record.Omitted != 0:
		return protocol.Response{Status: s.Status, Header: header(s.Header)}, ErrBodyOmitted
	case s.Flags&record.Offloaded != 0:
		ref := BlobRef{SHA256: s.Blob.SHA256, Size: s.Blob.Size, Day: s.Blob.Day}
		return protocol.Response{Status: s.Status, Header: header(s.Header), Length: s.Blob.Length()}, &OffloadedError{ref}
	}
	return protocol.Response{Status: s.Status, Header: header(s.Header), Body: s.Body, Trailer: header(s.Trailer)}, nil
}

// decodeSealed is Decode of an envelope.
func decodeSealed(payload []byte) (protocol.Response, error) {
	e, err := record.ParseEnvelope(payload)
	if err != nil {
		return protocol.Response{}, err
	}
	head := e.ClearHead()
	if head == nil {
		return protocol.Response{}, ErrSealed
	}
	s, err := record.Decode[protocol.Field](head)
	if err != nil {
		return protocol.Response{}, record.Corrupt("is sealed, and its head cannot be read")
	}
	return protocol.Response{Status: s.Status, Header: header(s.Header), Trailer: header(s.Trailer)}, ErrSealed
}

func header(section record.Section) protocol.Header {
	fields := make([]protocol.Field, 0, section.Len())
	for section.Len() > 0 {
		var f record.Field
		f, section = section.Next()
		fields = append(fields, protocol.Field(f))
	}
	return protocol.NewHeader(fields...)
}

// Annotation returns the text of [protocol.Keeping].Annotate beside the response in a
// payload. It is empty if there is none, or if the payload is unreadable or sealed as a
// whole.
func Annotation(payload []byte) string {
	if record.IsSealed(payload) {
		e, err := record.ParseEnvelope(payload)
		if err != nil {
			return ""
		}
		payload = e.ClearHead()
	}
	s, _ := record.Decode[protocol.Field](payload) // the zero value with an error
	return s.Annotation
}

// BlobRef is a record's reference to a body in a [protocol.BlobStore].
type BlobRef struct {
	SHA256 [32]byte // of its bytes
	Size   int64    // how many they are; at least 1
	Day    int      // when it was written, in days since 1970-01-01 UTC: 0 to 2,932,896
}

// Name returns the name of the blob in its store.
func (b BlobRef) Name() string {
	ref := record.Blob{SHA256: b.SHA256, Size: b.Size, Day: b.Day}
	return ref.Name()
}

// OffloadedError says that the body of a stored response is in a [protocol.BlobStore].
// See [Decode].
type OffloadedError struct{ Blob BlobRef }

// Error implements error.
func (e *OffloadedError) Error() string {
	return fmt.Sprintf("reprise: the body of the response (%d bytes) is in the blob store as %s", e.Blob.Size, e.Blob.Name())
}
