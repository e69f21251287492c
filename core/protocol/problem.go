package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// defaultProblemBase is where the problem types are documented. A type is the base
// followed by the code.
const defaultProblemBase = "https://github.com/reprise-go/reprise/blob/main/docs/problems.md#"

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

// Code names the reason why the middleware answered instead of the handler. Client
// programs branch on it.
type Code string

// The codes. Each is documented for clients in docs/problems.md.
const (
	CodeKeyMissing        Code = "key-missing"
	CodeKeyInvalid        Code = "key-invalid"
	CodeRequestInvalid    Code = "request-invalid"
	CodeScopeMissing      Code = "scope-missing"
	CodeInProgress        Code = "in-progress"
	CodeOutcomeUnknown    Code = "outcome-unknown"
	CodeResultUnavailable Code = "result-unavailable"
	CodeResultExpired     Code = "result-expired"
	CodeRequestTooLarge   Code = "request-too-large"
	CodeKeyReused         Code = "key-reused"
	CodeStoreUnavailable  Code = "store-unavailable"
	CodeNotApplied        Code = "not-applied"
	CodeRecordCorrupt     Code = "record-corrupt"
	CodeResponseTooLarge  Code = "response-too-large"
	CodeInternalError     Code = "internal-error"
)

// Problem is an answer of the middleware itself, in the terms of RFC 9457. It contains
// nothing from the request.
type Problem struct {
	Code       Code
	Status     int
	Title      string        // the same for every problem of the code
	Type       string        // a URI, the base of the guard's configuration followed by the code
	Detail     string        // a sentence or two for a person
	Retryable  bool          // whether the same request with the same key may succeed later
	RetryAfter time.Duration // how long the client should wait before; 0: the answer does not say
}

// problemTable has every code. "{header}" stands for the name of the key's header.
var problemTable = []Problem{
	{
		Code: CodeKeyMissing, Status: 400, Title: "Idempotency key missing",
		Detail: "This operation requires the {header} header. Nothing was run.",
	},
	{
		Code: CodeKeyInvalid, Status: 400, Title: "Idempotency key invalid",
		Detail: "The {header} header is not a valid key. Nothing was run.",
	},
	{
		Code: CodeRequestInvalid, Status: 400, Title: "Invalid request",
		Detail: "The request could not be read in full or understood. Nothing was run, and the {header} was not used.",
	},
	{
		Code: CodeScopeMissing, Status: 403, Title: "Caller unknown",
		Detail: "The {header} could not be attributed to an authenticated caller. Nothing was run.",
	},
	{
		Code: CodeInProgress, Status: 409, Title: "Request in progress", Retryable: true,
		Detail: "The first request with this {header} is still running. Retry with the same {header} to get its response.",
	},
	{
		Code: CodeOutcomeUnknown, Status: 409, Title: "Outcome unknown",
		Detail: "An earlier request with this {header} stopped before its result was recorded. It may have taken effect, and it is not run again.",
	},
	{
		Code: CodeResultUnavailable, Status: 409, Title: "Result unavailable",
		Detail: "The first request with this {header} ran, but its response was not kept. It is not run again.",
	},
	{
		Code: CodeResultExpired, Status: 409, Title: "Result expired",
		Detail: "The first request with this {header} ran, and its response is not kept any more. It is not run again.",
	},
	{
		Code: CodeRequestTooLarge, Status: 413, Title: "Request too large",
		Detail: "The request body exceeds the limit for requests with the {header} header. Nothing was run.",
	},
	{
		Code: CodeKeyReused, Status: 422, Title: "Idempotency key reused",
		Detail: "This {header} was used for a different request. Nothing was run. Use a new {header} for a new request.",
	},
	{
		Code: CodeStoreUnavailable, Status: 503, Title: "Store unavailable", Retryable: true,
		Detail: "The server could not determine whether this {header} was used before. Retry with the same {header}.",
	},
	{
		Code: CodeNotApplied, Status: 503, Title: "Not applied", Retryable: true,
		Detail: "The request ran, and all of its changes were rolled back. Retry with the same {header}.",
	},
	{
		Code: CodeRecordCorrupt, Status: 500, Title: "Record corrupt",
		Detail: "The record for this {header} cannot be read. Nothing was run.",
	},
	{
		Code: CodeResponseTooLarge, Status: 500, Title: "Response too large",
		Detail: "The response is too large to be recorded with its {header}, so all changes of the request were rolled back.",
	},
	{
		Code: CodeInternalError, Status: 500, Title: "Internal error",
		Detail: "The server failed while it checked this request. Nothing was run, and the {header} was not used.",
	},
}

// problems holds the answers of one guard. It is immutable and safe for concurrent use.
type problems struct {
	headerName string
	link       Field // to the policy; none if its name is empty
	ready      map[Code]prepared
}

// prepared is a problem with its answer, except for what a single request adds.
type prepared struct {
	problem  Problem
	response Response
}

// newProblems returns the answers whose type URIs begin with base, whose details name the
// header headerName, and which link to the policy.
func newProblems(base, headerName string, link Field) problems {
	ps := problems{headerName: headerName, link: link, ready: make(map[Code]prepared, len(problemTable))}
	for _, p := range problemTable {
		p.Type = base + string(p.Code)
		p.Detail = strings.ReplaceAll(p.Detail, "{header}", headerName)
		ps.ready[p.Code] = prepared{problem: p, response: ps.response(p)}
	}
	return ps
}

// of returns the problem for code, which is one of the constants. retryAfter is how long
// the client should wait; it is left out if it is not positive, or a retry makes no
// sense.
func (ps *problems) of(code Code, retryAfter time.Duration) Problem {
	p := ps.ready[code].problem
	if retryAfter > 0 && p.Retryable {
		p.RetryAfter = retryAfter
	}
	return p
}

// ofKey returns the problem for a key that [keyGrammar.parse] refused, with the reason.
func (ps *problems) ofKey(err error) Problem {
	p := ps.ready[CodeKeyInvalid].problem
	var bad keyError
	if errors.As(err, &bad) {
		p.Detail = "The " + ps.headerName + " header " + string(bad) + ". Nothing was run."
	}
	return p
}

// ofBlob returns the problem of a recorded response whose body cannot be read at the
// moment.
func (ps *problems) ofBlob(retryAfter time.Duration) Problem {
	p := ps.of(CodeStoreUnavailable, retryAfter)
	p.Detail = "The first request with this " + ps.headerName + " completed, but its response cannot be read at the moment. " +
		"Retry with the same " + ps.headerName + "."
	return p
}

// answer returns the response for code in the standard form, see [problems.of].
func (ps *problems) answer(code Code, retryAfter time.Duration) Response {
	ready := ps.ready[code]
	if retryAfter > 0 && ready.problem.Retryable {
		ready.response.Header = ps.header(ps.of(code, retryAfter))
	}
	return ready.response
}

// completed adds to the response of a configured function what it may not lack: a status,
// that no cache stores it, and the link to the policy.
func (ps *problems) completed(r Response, p Problem) Response {
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
	if ps.link.Name != "" && !r.Header.has(ps.link) {
		r.Header = Header{fields: append(slices.Collect(r.Header.All()), ps.link)}
	}
	return r
}

var noStore = Field{Name: "Cache-Control", Value: "no-store"}

// response is the standard form of an answer: RFC 9457, in JSON.
func (ps *problems) response(p Problem) Response {
	return Response{Status: p.Status, Header: ps.header(p), Body: problemBody(p)}
}

// header includes a link to the policy or, for clients that do not know the key's header,
// to its documentation.
func (ps *problems) header(p Problem) Header {
	fields := []Field{{Name: "Content-Type", Value: "application/problem+json"}, noStore}
	if p.RetryAfter > 0 {
		fields = append(fields, retryAfterField(p.RetryAfter))
	}
	switch {
	case ps.link.Name != "":
		fields = append(fields, ps.link)
	case p.Code == CodeKeyMissing || p.Code == CodeKeyInvalid:
		fields = append(fields, describedBy(p.Type))
	}
	return Header{fields: fields}
}

// describedBy returns the field that links to a documentation. It leaves the other links
// of a response as they are.
func describedBy(uri string) Field {
	return Field{Name: "Link", Value: "<" + uri + `>; rel="describedby"`, Add: true}
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

// retryAfterField rounds up to whole seconds, so that nobody comes back too soon.
func retryAfterField(d time.Duration) Field {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return Field{Name: "Retry-After", Value: strconv.FormatInt(seconds, 10)}
}
