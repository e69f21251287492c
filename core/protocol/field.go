package protocol

import (
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/internal/syntax"
)

// Field is one line of a response's header section.
type Field struct {
	Name  string
	Value string

	// Add decides about the values that the response already has under Name: false replaces
	// them, true adds the line after them. A field with the two values a and b is (a,
	// false), (b, true).
	Add bool

	// Remove says that the field removes the values that the response has under Name, and
	// adds none. Value is empty then.
	Remove bool

	// Suppress, beside Remove, says that the server fills in none either, as it does for
	// Date and Content-Type: a field of net/http with a name and no values. A framework
	// that has no such fields only removes it.
	Suppress bool
}

// Header is an ordered, immutable list of fields. The zero value is empty. It is safe for
// concurrent use, and copying it copies no fields.
//
// A header of a stored response reads its fields from the stored bytes each time. Its
// strings are views into those bytes. They stay valid as long as they are referenced,
// because a payload that a store returned is never modified.
type Header struct {
	fields []Field
	stored record.Section // of a stored response
}

// NewHeader returns the header of fields, which it copies.
func NewHeader(fields ...Field) Header {
	return Header{fields: slices.Clone(fields)}
}

// with returns the header with more fields before the others.
func (h Header) with(fields ...Field) Header {
	return Header{fields: slices.AppendSeq(fields, h.All())}
}

// Len returns the number of fields.
func (h Header) Len() int { return len(h.fields) + h.stored.Len() }

// All iterates over the fields in their order. It does not allocate.
func (h Header) All() iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for _, f := range h.fields {
			if !yield(f) {
				return
			}
		}
		for rest := h.stored; rest.Len() > 0; {
			var f record.Field
			if f, rest = rest.Next(); !yield(Field(f)) {
				return
			}
		}
	}
}

// Get returns the first value of the field called name, in any case, and whether the
// header has one.
func (h Header) Get(name string) (string, bool) {
	for f := range h.All() {
		if !f.Remove && strings.EqualFold(f.Name, name) {
			return f.Value, true
		}
	}
	return "", false
}

// has reports whether the header has a line like f.
func (h Header) has(f Field) bool {
	for own := range h.All() {
		if !own.Remove && own.Value == f.Value && strings.EqualFold(own.Name, f.Name) {
			return true
		}
	}
	return false
}

// Response is a response for an adapter to write: a replay or a refusal. Body must not be
// modified: it may be part of a stored record, or shared by many responses.
type Response struct {
	Status  int
	Header  Header
	Body    []byte
	Trailer Header // sent after the body; usually empty, and so where the client would get none, as in HTTP/1.0

	// Stream, if it is not nil, is the body in place of Body, and Length its length, which
	// is declared. The writer of the response reads Stream once, and closes it in any case,
	// as [Response.Write] does; a response that is not written is closed by
	// [Response.Close]. A Stream that ends early, with an error, breaks off the response. It
	// is not safe for concurrent use.
	Stream io.ReadCloser
	Length int64

	problem *Problem // of a refusal of a [Call]; the other fields are empty then
}

// Close closes the Stream, if there is one, of a response that is not written.
func (r Response) Close() {
	if r.Stream != nil {
		_ = r.Stream.Close() // it was only read
	}
}

// cleanValue returns a field value with every CR, LF and NUL replaced by a space, as the
// best of servers do: they would end the line, and begin another (RFC 9110, section 5.5).
func cleanValue(value string) string {
	if !syntax.HasLineBytes(value) {
		return value
	}
	clean := []byte(value)
	for i, c := range clean {
		if c == '\r' || c == '\n' || c == 0 {
			clean[i] = ' '
		}
	}
	return string(clean)
}
