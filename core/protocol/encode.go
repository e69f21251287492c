package protocol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-go/reprise/core/protocol/internal/record"
	"github.com/reprise-go/reprise/core/protocol/internal/syntax"
	"github.com/reprise-go/reprise/core/store"
)

// The errors for records without a whole response. See [DecodeResponse].
var (
	// ErrBodyOmitted says that the body was not kept. Retries get the substitute of
	// Config.Oversize.
	ErrBodyOmitted = errors.New("reprise: the body of the response was not kept")

	// ErrResultUnavailable says that there is no response: it was cut short, or a part of
	// it cannot be kept. Retries get 409 result-unavailable.
	ErrResultUnavailable = errors.New("reprise: the response was not kept")
)

// EncodeResponse returns the form in which a record keeps r, for an operator who resolves
// a record (see [Resolve]), for tests, and for programs that write records themselves. A
// handler uses [Payload], which applies the policy of its guard.
//
// A response that a replay could not serve is refused, with an error that wraps
// [store.ErrInvalid] and names the mistake: a status outside of 200 to 999, a field that
// cannot be sent or is never kept (such as Content-Length, which every replay computes,
// or Set-Cookie), more than 64 fields or 16 KiB of them, a body of more than 63 MiB, and
// a body for a status that has none. [DecodeResponse] reads the result.
func EncodeResponse(r Response) ([]byte, error) {
	if r.Stream != nil {
		return nil, refuseResponse("the body is a stream")
	}
	s := storedOf(r)
	if err := encodable(&s); err != nil {
		return nil, err
	}
	payload := record.Append(make([]byte, 0, s.Size()), &s)
	if _, err := record.Decode[Field](payload); err != nil { // the decoder has the last word
		return nil, fmt.Errorf("%w: the response cannot be kept: %v", store.ErrInvalid, err) //nolint:errorlint // nothing is corrupt
	}
	return payload, nil
}

func storedOf(r Response) stored {
	return stored{Status: r.Status, Body: r.Body, Fields: slices.Collect(r.Header.All()), Trailers: slices.Collect(r.Trailer.All())}
}

// encodable reports the part of a response that a replay could not serve.
func encodable(s *stored) error {
	switch {
	case s.Status < 200 || s.Status > 999:
		return refuseResponse("the status %d is not 200 to 999", s.Status)
	case len(s.Body) > maxKeptBody:
		return refuseResponse("the body has %d bytes, want %d at most", len(s.Body), maxKeptBody)
	case len(s.Body) > 0 && !syntax.AllowsBody(s.Status):
		return refuseResponse("the status %d has no body", s.Status)
	}
	var all fieldPolicy
	for i, f := range slices.Concat(s.Fields, s.Trailers) {
		switch {
		case !syntax.ValidField(f.Name, f.Value):
			return refuseResponse("the field %q has a name or a value that cannot be sent", f.Name)
		case f.Remove && f.Value != "":
			return refuseResponse("the field %s is removed and has a value", f.Name)
		case f.Remove && i >= len(s.Fields):
			return refuseResponse("the trailer field %s is removed", f.Name)
		case f.Remove && all.control.reserve(f.Name), !f.Remove && !all.keeps(f.Name):
			return refuseResponse("the field %s is never kept: leave it out", f.Name)
		}
	}
	if !record.Fits(slices.Concat(s.Fields, s.Trailers)) {
		return refuseResponse("it has more than %d header fields, or more than %d bytes of them", record.MaxFields, record.MaxHeaderBytes)
	}
	return nil
}

func refuseResponse(format string, args ...any) error {
	return fmt.Errorf("%w: the response cannot be kept: %s", store.ErrInvalid, fmt.Sprintf(format, args...))
}

// DecodeResponse reads the payload of a record, with the checks of a replay. The response
// is that of a retry, without the fields that mark it as a replay. The error wraps
// [store.ErrCorrupt] for a payload whose retries get 500 record-corrupt.
//
// Some records have no whole response. Then the error wraps [ErrBodyOmitted], and the
// response has the status and the fields; or [ErrResultUnavailable], and it has only the
// status; or it is an [*OffloadedError], and the response has all but the body, and the
// Length of that.
//
// A response that is sealed (see [Sealing]) cannot be read without the client's key: then
// the error wraps [ErrSealed], and the response is empty, or, with Sealing.ClearHead, has
// the status and the fields, which are not verified. [Sealing.OpenResponse] opens it.
//
// The response is a view into payload, which must not be modified.
func DecodeResponse(payload []byte) (Response, error) {
	if record.IsSealed(payload) {
		return decodeSealed(payload)
	}
	s, err := record.Decode[Field](payload)
	switch {
	case err != nil:
		return Response{}, err
	case s.Flags&record.Cut != 0:
		return Response{Status: s.Status}, ErrResultUnavailable
	case s.Flags&record.Omitted != 0:
		return Response{Status: s.Status, Header: Header{stored: s.Header}}, ErrBodyOmitted
	case s.Flags&record.Offloaded != 0:
		ref := BlobRef{SHA256: s.Blob.SHA256, Size: s.Blob.Size, Day: s.Blob.Day}
		return Response{Status: s.Status, Header: Header{stored: s.Header}, Length: s.Blob.Length()}, &OffloadedError{ref}
	}
	return Response{Status: s.Status, Header: Header{stored: s.Header}, Body: s.Body, Trailer: Header{stored: s.Trailer}}, nil
}

// Annotation returns the text of [Config].Annotate beside the response in a payload. It
// is empty if there is none, or if the payload is unreadable or sealed as a whole.
func Annotation(payload []byte) string {
	if record.IsSealed(payload) {
		e, err := record.ParseEnvelope(payload)
		if err != nil {
			return ""
		}
		payload = e.ClearHead()
	}
	s, _ := record.Decode[Field](payload) // the zero value with an error
	return s.Annotation
}

// Resolve ends a lapsed record whose fence is still fence, with r as the response to its
// retries for the given time: see [store.Inspector]. It is the way to resolve a record
// whose requests a guard reads, because it refuses a response that a replay could not
// serve: then the error wraps [store.ErrInvalid]. [store.ErrRecordChanged] says that the
// record is not the one that was inspected. A store without an Inspector is ErrInvalid.
func Resolve(ctx context.Context, st store.Store, id store.ID, fence uint64, r Response, retention time.Duration) error {
	inspector, ok := store.As[store.Inspector](st)
	if !ok {
		return fmt.Errorf("%w: this store has no Inspector, so its records cannot be resolved", store.ErrInvalid)
	}
	payload, err := EncodeResponse(r)
	if err != nil {
		return err
	}
	return inspector.Resolve(ctx, id, store.Resolution{Fence: fence, Payload: payload, Retention: retention})
}
