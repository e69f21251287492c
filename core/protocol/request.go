package protocol

import (
	"io"
	"mime/multipart"
	"strings"
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
	HTTP10  bool // the request has HTTP/1.0; only the check of Section asks

	// Body is the body as it was sent. It is read only after the checks on the header. A
	// framework that has read the body already sets Bytes instead, and one that has
	// parsed it sets Form. All three empty: no body.
	Body  io.Reader
	Bytes []byte

	// Form returns the multipart form that a framework parsed while it read the body,
	// whose bytes are gone. Its parts are compared, in any order of their names.
	Form func() (*multipart.Form, error)

	// Parsed has the form that a layer outside, or the scope function, may have parsed from
	// Body before the protocol reads it. Nil where the framework keeps none.
	Parsed interface{ ParsedForm() *multipart.Form }

	// TooLarge reports whether an error of reading Body says that the body is larger than
	// an outer layer allows. Nil: no error does.
	TooLarge func(error) bool

	// Length is the length that the client declared for Body, so that a body over the
	// limit is refused before it is read. Zero or less: not known.
	Length int64

	message func() ([]byte, error) // of a Call: its encoded message; nil for a request of HTTP
}

// isCall reports whether r is a call of [Guard.AdmitCall]. A nil request is not.
func (r *Request) isCall() bool { return r != nil && r.message != nil }

// cutTarget takes path and query from the target.
func (r *Request) cutTarget() {
	if strings.HasPrefix(r.Target, "/") {
		r.Path, r.RawQuery, _ = strings.Cut(r.Target, "?")
	}
}

// values returns the field lines called name, none if the request has no header.
func (r *Request) values(name string) []string {
	if r.Header == nil {
		return nil
	}
	return r.Header.Values(name)
}
