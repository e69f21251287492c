package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
)

// defaultProblemBase is where the problem types are documented. A type is the base
// followed by the code.
const defaultProblemBase = "https://github.com/reprise-go/reprise/blob/main/docs/reference/problems.md#"

// validURI reports whether text can be part of a URI, and stand in the angle brackets of
// a Link field: printable US-ASCII without the bytes that RFC 3986 excludes from every
// URI.
func validURI(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' || strings.IndexByte("<>\"\\^`{|}", text[i]) >= 0 {
			return false
		}
	}
	return text != ""
}

// problems holds the responses of one guard. It is immutable and safe for concurrent use.
type problems struct {
	word  string // for a key
	ready map[Code]prepared
}

// prepared is a problem with its response.
type prepared struct {
	problem  Problem
	response Response
}

// newProblems returns the responses whose type URIs begin with base, and whose details
// name the source of the key.
func newProblems(base string, source KeySource) problems {
	ps := problems{word: source.word(), ready: make(map[Code]prepared, len(problemTable))}
	for i := range problemTable {
		p := problemTable[i].named(base, source)
		ps.ready[p.Code] = prepared{problem: p, response: p.Response()}
	}
	return ps
}

// of returns the problem for code, which is one of the constants.
func (ps *problems) of(code Code) Problem { return ps.ready[code].problem }

// ofKey returns the problem for a key in a place, which is a noun, with the reason.
func (ps *problems) ofKey(place string, err error) Problem {
	p := ps.of(CodeKeyInvalid)
	bad := errKeyOwn
	_ = errors.As(err, &bad)
	p.Detail = "The " + place + " " + string(bad) + ". Nothing was run."
	return p
}

// ofBlob returns the problem of a recorded response whose body cannot be read at the
// moment.
func (ps *problems) ofBlob() Problem {
	p := ps.of(CodeStoreUnavailable)
	p.Detail = "The first request with this " + ps.word + " completed, but its response cannot be read at the moment. " +
		"Retry with the same " + ps.word + "."
	return p
}

// completed adds the required parts to the response of a configured function: a status,
// and that no cache stores it.
func (p *Problem) completed(r Response) Response {
	if r.Status == 0 {
		r.Status = p.Status
	}
	var missing []Field
	if _, ok := r.Header.Get("Cache-Control"); !ok {
		missing = append(missing, noStore)
	}
	if _, ok := r.Header.Get("Retry-After"); !ok && p.RetryAfter > 0 {
		missing = append(missing, retryAfterField(p.RetryAfter))
	}
	if missing != nil {
		r.Header = r.Header.with(missing...)
	}
	return r
}

var noStore = Field{Name: "Cache-Control", Value: "no-store"}

// Response returns the standard form of the response to a problem: that of RFC 9457, in
// JSON. A response about a key has a link to the documentation, for clients that do not
// know its header.
func (p Problem) Response() Response {
	fields := []Field{{Name: "Content-Type", Value: "application/problem+json"}, noStore}
	if p.RetryAfter > 0 {
		fields = append(fields, retryAfterField(p.RetryAfter))
	}
	if p.Code == CodeKeyMissing || p.Code == CodeKeyInvalid { // beside the other links of the response
		fields = append(fields, Field{Name: "Link", Value: "<" + p.Type + `>; rel="describedby"`, Add: true})
	}
	return Response{Status: p.Status, Header: Header{fields: fields}, Body: problemBody(p)}
}

func problemBody(p Problem) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // a URI with an ampersand stays readable
	_ = encoder.Encode(struct {  // strings, a number and a bool: it cannot fail
		Type      string `json:"type"`
		Title     string `json:"title"`
		Status    int    `json:"status"`
		Detail    string `json:"detail"`
		Code      Code   `json:"code"`
		Retryable bool   `json:"retryable"`
	}{p.Type, p.Title, p.Status, p.Detail, p.Code, p.Retryable})
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// retryAfterField rounds up to whole seconds, so that no client comes back too soon.
func retryAfterField(d time.Duration) Field {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return Field{Name: "Retry-After", Value: strconv.FormatInt(seconds, 10)}
}
