package protocol

import (
	"fmt"
	"io"
	"iter"
	"mime/multipart"
	"strings"

	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/protocol/internal/canonical"
	"github.com/reprise-go/reprise/core/store"
)

// Request is the protocol's view of an HTTP request, independent of a framework. An
// adapter fills it for each request. It is not kept after the request, so an adapter may
// pass buffers that its framework reuses.
type Request struct {
	Method   string // as sent, case-sensitive
	Path     string // the escaped path, as sent: "/a%2Fb" and "/a/b" are two paths
	RawQuery string // the query as sent, without the question mark

	// Target is the request target as it came in ("/a%2Fb?x=1"), where the framework has
	// it. Path and RawQuery are then taken from it, so that a prefix that an outer layer
	// removed from the path still counts. A target in another form is ignored.
	Target string

	Host string // of the request, where the framework keeps it apart from the header

	// Header reads the header section, as [net/http.Header] does; nil is an empty one.
	// Values returns the value of every field line called name, in the order in which they
	// came in and unchanged: neither joined nor trimmed. Names are case-insensitive. Lines
	// of the trailer section are not part of it. The slice is not modified, and neither it
	// nor a string in it is kept after the request.
	Header interface{ Values(name string) []string }

	// Section is the header section as its bytes came in, where the framework has it: a
	// request that its recipients may read in different ways is refused (R27b). It stays
	// empty where the server refuses such requests itself.
	Section HeaderSection
	HTTP10  bool // the request has HTTP/1.0, where no trailers follow a body
	HTTP2   bool // the request has HTTP/2 or later, where trailers may follow any response

	// Body is the body as it was sent. It is read only after the checks on the header. A
	// framework that has read the body already sets Bytes instead, and one that has
	// parsed it sets Form. All three empty: no body.
	Body  io.Reader
	Bytes []byte

	// Form returns the multipart form that a framework parsed while it read the body,
	// whose bytes are gone. Its parts are compared, in any order of their names, and
	// without what a parser drops: the fields of values, parts without a name, preamble
	// and epilogue (see [DefaultFingerprint]).
	Form func() (*multipart.Form, error)

	// Parsed has what the framework kept of a Body that an outer layer or the scope
	// function consumed before the protocol reads it: the form that was parsed, or the
	// bytes. Both are nil if there are none. They take the place of Body, which is refused
	// without them (R50). Parsed is nil if the framework keeps neither.
	Parsed interface {
		ParsedForm() *multipart.Form
		ParsedBytes() []byte
	}

	// TooLarge reports whether an error of reading Body says that the body is larger than
	// an outer layer allows. Nil: no error does.
	TooLarge func(error) bool

	// Length is the length that the client declared for Body, so that a body over the
	// limit is refused before it is read, and one of which another layer consumed a part
	// is noticed. Negative: not known. An empty Body of unknown length is refused if there
	// is a Content-Type or a content coding, because it looks like one that was consumed.
	Length int64

	notation bool   // the body that was read is the notation of a form
	rest     []byte // with notation: the bytes of Body that were left

	message func() ([]byte, error) // of a Call: its encoded message; nil for a request of HTTP
	field   func(name string) any  // of a Call: see Call.Field
}

// version is a version of HTTP, as far as trailers depend on it.
type version uint8

// The versions. The zero value is that of a [Call], too.
const (
	http11 version = iota
	http10
	http2 // and later
)

// version returns the version of the request.
func (r *Request) version() version {
	switch {
	case r.HTTP2:
		return http2
	case r.HTTP10:
		return http10
	default:
		return http11
	}
}

// sendsTrailers reports whether a response with a status can have trailers (R17): in
// HTTP/1.1 they follow a body in chunks.
func (v version) sendsTrailers(status int) bool {
	return v == http2 || v == http11 && syntax.AllowsBody(status)
}

// isCall reports whether r is a call of [Guard.AdmitCall]. A nil request is not.
func (r *Request) isCall() bool { return r != nil && r.message != nil }

// values returns the field lines called name, none if the request has no header.
func (r *Request) values(name string) []string {
	if r.Header == nil {
		return nil
	}
	return r.Header.Values(name)
}

// HeaderSection is the header section of a request as its bytes came in: the field lines
// behind the request line, with their line ends, and with or without the empty line that
// ends them. A parsed header does not tell everything of it: which lines were folded,
// which framing fields contradicted each other, which fields followed the body as
// trailers.
type HeaderSection string

// Values returns an iterator over the values of the field lines called name, in any case,
// in their order and without the white space around them.
func (s HeaderSection) Values(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := s; rest != ""; {
			var line string
			line, rest, _ = rest.cut()
			field, value, _ := strings.Cut(line, ":")
			if strings.EqualFold(field, name) && !yield(syntax.TrimSpace(value)) {
				return
			}
		}
	}
}

// Count returns the number of field lines called name, in any case.
func (s HeaderSection) Count(name string) (lines int) {
	for range s.Values(name) {
		lines++
	}
	return lines
}

// cut returns the first line without its end, the rest, and whether the end was CRLF.
func (s HeaderSection) cut() (line string, rest HeaderSection, crlf bool) {
	text, after, _ := strings.Cut(string(s), "\n")
	line, crlf = strings.CutSuffix(text, "\r")
	return line, HeaderSection(after), crlf
}

// errFraming is the error that the observer gets for a request whose section has a flaw.
var errFraming = fmt.Errorf("%w: the framing of the request is ambiguous", store.ErrInvalid)

// flaw is the reason why recipients may read a header section differently.
type flaw uint8

// The flaws, the worst last.
const (
	sound     flaw = iota
	ambiguous      // where the body ends, or a line
	malformed      // which fields there are
)

// flaw returns the worst flaw of the section (R27b; RFC 9112, sections 2.2, 5 and 6).
// http10 says that the request has HTTP/1.0, which knows no Transfer-Encoding. An empty
// section is sound.
//
//	a line that is folded, or has no colon              malformed
//	a field name with a byte that is not a token's      malformed
//	CR or NUL in a value                                malformed
//	a line that ends in LF alone                        ambiguous
//	more than one Content-Length or Transfer-Encoding   ambiguous
//	both of them, or the latter in HTTP/1.0             ambiguous
//	Content-Length that is not a number                 ambiguous
//	Transfer-Encoding other than chunked                ambiguous
func (s HeaderSection) flaw(http10 bool) flaw {
	worst, framing := sound, 0
	for s != "" {
		line, rest, crlf := s.cut()
		s = rest
		if !crlf {
			worst = ambiguous
		}
		if line == "" {
			continue
		}
		name, value, there := strings.Cut(line, ":")
		if !there || !syntax.ValidName(name) || syntax.HasLineBytes(value) {
			return malformed
		}
		switch value = syntax.TrimSpace(value); {
		case strings.EqualFold(name, "Content-Length"):
			framing++
			if !isNumber(value) {
				worst = ambiguous
			}
		case strings.EqualFold(name, "Transfer-Encoding"):
			framing++
			if http10 || !strings.EqualFold(value, "chunked") {
				worst = ambiguous
			}
		}
	}
	if framing > 1 {
		worst = ambiguous
	}
	return worst
}

// closing makes a refusal close the connection, if its request has a flaw: the next bytes
// on the connection may be a part of it.
func (f flaw) closing(a Admission) Admission {
	if f != sound {
		a.Response.Header = a.Response.Header.with(Field{Name: "Connection", Value: "close"})
	}
	return a
}

// isNumber reports whether s is a number of decimal digits.
func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// isJSON reports whether r has a Content-Type, and every line of it is a JSON type.
func isJSON(r *Request) bool {
	lines := r.values("Content-Type")
	for _, line := range lines {
		var stack [64]byte
		lower := string(syntax.AppendLower(stack[:0], syntax.MediaType(line)))
		if lower != "application/json" && lower != "text/json" && !strings.HasSuffix(lower, "+json") {
			return false
		}
	}
	return len(lines) > 0
}

// isMultipart reports whether a Content-Type of r is one of bodies in parts.
func isMultipart(r *Request) bool {
	for _, line := range r.values("Content-Type") {
		const prefix = "multipart/"
		if media := syntax.MediaType(line); len(media) >= len(prefix) && strings.EqualFold(media[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// hasUncomparedParts reports whether a body in parts is compared with its boundary, which
// clients choose anew for each request.
func hasUncomparedParts(r *Request, body []byte) bool {
	if r.notation || !isMultipart(r) {
		return false
	}
	var form canonical.Form
	return !parseForm(r, body, &form)
}

// parseForm reports whether the body of r is a multipart form, and reads it.
func parseForm(r *Request, body []byte, form *canonical.Form) bool {
	boundary, ok := formBoundary(r)
	return ok && form.Parse(body, boundary)
}

// formBoundary returns the boundary of a request whose body may be a multipart form. ok
// is false if it has another Content-Type, or more than one, or a content coding, or if
// any reader could find another boundary: a parameter is malformed, there is more than
// one boundary, or it is not 1 to 70 bytes of those of RFC 2046, section 5.1.1.
func formBoundary(r *Request) (boundary string, ok bool) {
	lines := r.values("Content-Type")
	if len(lines) != 1 || !strings.EqualFold(syntax.MediaType(lines[0]), "multipart/form-data") || r.isCoded() {
		return "", false
	}
	_, rest, more := strings.Cut(lines[0], ";")
	for more {
		var name, value string
		if name, value, rest, more, ok = syntax.CutParameter(rest); !ok {
			return "", false
		}
		const prefix = "boundary" // and also "boundary*0" of RFC 2231
		if len(name) < len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
			continue
		}
		if len(name) > len(prefix) || boundary != "" || !validBoundary(value) {
			return "", false
		}
		boundary = value
	}
	return boundary, boundary != ""
}

var boundaryBytes = syntax.NewByteSet("'()+_,-./:=? ")

func validBoundary(text string) bool {
	return text != "" && len(text) <= canonical.MaxBoundary && !strings.HasSuffix(text, " ") && boundaryBytes.HaveAll(text)
}
