package protocol

import (
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

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

// fieldPolicy decides which fields of a response are kept for its replays. The zero value
// keeps all but those that are never kept. It is immutable and safe for concurrent use.
type fieldPolicy struct {
	allow map[string]struct{} // in lower case; nil: no list
}

// newFieldPolicy returns the policy that keeps the fields called allow, in any case; an
// empty list keeps none, and nil keeps all. Either way some are never kept. To name one
// of those is an error, and so is an invalid field name.
func newFieldPolicy(allow []string) (fieldPolicy, error) {
	if allow == nil {
		return fieldPolicy{}, nil
	}
	names := make(map[string]struct{}, len(allow))
	for _, name := range allow {
		lower := syntax.AppendLower(nil, name)
		if !syntax.ValidName(name) {
			return fieldPolicy{}, invalid("Keep.Headers", "%q is not a field name", name)
		}
		if record.LowerIsNeverKept(lower) || record.IsControlField(name) {
			return fieldPolicy{}, invalid("Keep.Headers", "the field %s is never kept", name)
		}
		names[string(lower)] = struct{}{}
	}
	return fieldPolicy{allow: names}, nil
}

// keeps reports whether the field called name, in any case, is kept. It does not allocate
// for names of up to 64 bytes.
func (p *fieldPolicy) keeps(name string) bool {
	var stack [64]byte
	lower := syntax.AppendLower(stack[:0], name)
	if record.LowerIsNeverKept(lower) || record.IsControlField(name) {
		return false
	}
	if p.allow == nil {
		return true
	}
	switch string(lower) {
	case "content-encoding", "content-range", "content-type", // without them the stored body is unusable
		"grpc-message", "grpc-status", "grpc-status-details-bin": // and these are the response of a call that failed
		return true
	}
	_, ok := p.allow[string(lower)]
	return ok
}

// filter appends to dst the fields of src that are kept, and counts the Set-Cookie lines
// that are not. It drops fields that the policy does not keep, fields that a Connection
// field of src names, and fields that cannot be sent (see [validField]). It keeps every
// removal, which is about the fields of outer layers. It does not allocate if dst has
// room. dst and src must not overlap.
func (p *fieldPolicy) filter(dst, src []Field) (kept []Field, setCookies int) {
	hopByHop := slices.ContainsFunc(src, func(f Field) bool { return isConnection(f.Name) })
	orphaned := "" // the field whose first value was dropped: its next one replaces instead
	for _, f := range src {
		switch {
		case f.Remove:
			if syntax.ValidName(f.Name) && !record.IsControlField(f.Name) {
				dst = append(dst, f)
			}
		case !p.keeps(f.Name):
			if strings.EqualFold(f.Name, "Set-Cookie") {
				setCookies++
			}
		case hopByHop && connectionNames(src, f.Name):
		case !syntax.ValidField(f.Name, f.Value):
			if !f.Add {
				orphaned = f.Name
			}
		default:
			if orphaned != "" && strings.EqualFold(f.Name, orphaned) {
				f.Add, orphaned = false, ""
			}
			dst = append(dst, f)
		}
	}
	return dst, setCookies
}

// connectionNames reports whether a Connection field among fields names name, so that it
// belongs to one hop.
func connectionNames(fields []Field, name string) bool {
	return slices.ContainsFunc(fields, func(f Field) bool { return isConnection(f.Name) && namesField([]string{f.Value}, name) })
}

func isConnection(name string) bool { return strings.EqualFold(name, "Connection") }

// The names of the response fields in which a guard speaks to clients. Only FieldExpires
// may come from a handler: the others are removed from its response (R11).
const (
	FieldReplayed = record.FieldReplayed // "true" on a replay
	FieldStatus   = record.FieldStatus   // "unrecorded" or "unprotected": a retry may run again
	FieldBody     = record.FieldBody     // "omitted" on a replay whose body was not kept
	FieldExpires  = record.FieldExpires  // until when a response is replayed, see Config.Expires
)

// The control fields with their values. They are never modified.
var (
	markReplayed    = []Field{{Name: FieldReplayed, Value: "true"}}
	markUnrecorded  = Field{Name: FieldStatus, Value: "unrecorded"}
	markUnprotected = Field{Name: FieldStatus, Value: "unprotected"}
	markOmitted     = Field{Name: FieldBody, Value: "omitted"}
)

// expiry returns the field that says until when a response with these fields of its
// handler, recorded now, is replayed: a Date of RFC 9651, section 3.3.7, rounded down to
// the second. There is none if the policy announces none, or if the handler did.
func (g *Guard) expiry(own []Field) Field {
	if !g.cfg.Expires {
		return Field{}
	}
	if _, set := (Header{fields: own}).Get(FieldExpires); set {
		return Field{}
	}
	return Field{Name: FieldExpires, Value: "@" + strconv.FormatInt(time.Now().Add(g.retention).Unix(), 10)}
}

// Tidy returns the value with which a field that the handler set may be sent: without the
// bytes that would end its line. keep is false for a field that only the protocol sets
// (R11). An adapter whose framework holds the response in memory, and checks neither,
// sends what Tidy returns; a [Recorder] does so itself.
func (x *Exchange) Tidy(name, value string) (tidied string, keep bool) {
	return cleanValue(value), !record.IsControlField(name)
}
