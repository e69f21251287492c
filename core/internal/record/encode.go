package record

import (
	"fmt"
	"slices"

	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/store"
)

// Encode returns the encoded form of a whole response that no guard has recorded. It
// refuses one that a replay could not serve, with an error that wraps [store.ErrInvalid].
func Encode[F AnyField](s *Response[F]) ([]byte, error) {
	if err := encodable(s); err != nil {
		return nil, err
	}
	payload := Append(make([]byte, 0, s.Size()), s)
	if _, err := Decode[F](payload); err != nil { // the decoder has the last word
		return nil, Refuse("%v", err)
	}
	return payload, nil
}

// encodable reports the part of a response that a replay could not serve.
func encodable[F AnyField](s *Response[F]) error {
	switch {
	case s.Status < 200 || s.Status > 999:
		return Refuse("the status %d is not 200 to 999", s.Status)
	case len(s.Body) > MaxBody:
		return Refuse("the body has %d bytes, want %d at most", len(s.Body), MaxBody)
	case len(s.Body) > 0 && !syntax.AllowsBody(s.Status):
		return Refuse("the status %d has no body", s.Status)
	}
	fields := slices.Concat(s.Fields, s.Trailers)
	for i := range fields {
		switch f := Field(fields[i]); {
		case !syntax.ValidField(f.Name, f.Value):
			return Refuse("the field %q has a name or a value that cannot be sent", f.Name)
		case f.Suppress && !f.Remove:
			return Refuse("the field %s is suppressed and not removed", f.Name)
		case f.Remove && f.Value != "":
			return Refuse("the field %s is removed and has a value", f.Name)
		case f.Remove && i >= len(s.Fields):
			return Refuse("the trailer field %s is removed", f.Name)
		case IsControlField(f.Name), !f.Remove && IsNeverKept(f.Name):
			return Refuse("the field %s is never kept: leave it out", f.Name)
		}
	}
	if !Fits(fields) {
		return Refuse("it has more than %d header fields, or more than %d bytes of them", MaxFields, MaxHeaderBytes)
	}
	return nil
}

// Refuse returns the error for a response that cannot be kept, with the reason.
func Refuse(format string, args ...any) error {
	return fmt.Errorf("%w: the response cannot be kept: %s", store.ErrInvalid, fmt.Sprintf(format, args...))
}
