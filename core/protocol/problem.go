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

// defaultProblemBase is where the problem types are documented. A type is the base followed by the code.
const defaultProblemBase = "https://github.com/reprise-go/reprise/blob/main/docs/problems.md#"

// validProblemBase reports whether base can stand in a URI, and in the angle brackets of a Link field: printable US-ASCII
// without the bytes that RFC 3986 keeps out of every URI.
func validProblemBase(base string) bool {
	for i := range len(base) {
		if base[i] <= ' ' || base[i] > '~' || strings.IndexByte("<>\"\\^`{|}", base[i]) >= 0 {
			return false
		}
	}
	return base != ""
}

// Code names a reason for which the middleware answered instead of the handler. It is what a client's program looks at.
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
	CodeRequestTooLarge   Code = "request-too-large"
	CodeKeyReused         Code = "key-reused"
	CodeStoreUnavailable  Code = "store-unavailable"
	CodeNotApplied        Code = "not-applied"
	CodeRecordCorrupt     Code = "record-corrupt"
	CodeResponseTooLarge  Code = "response-too-large"
)

// Problem is an answer of the middleware itself, in the terms of RFC 9457. It has nothing of the request in it.
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
		Code: CodeRequestInvalid, Status: 400, Title: "Request invalid",
		Detail: "The request body could not be read in full, or not be understood. Nothing was run, and the {header} was not used.",
	},
	{
		Code: CodeScopeMissing, Status: 403, Title: "Scope missing",
		Detail: "The {header} could not be attributed to an authenticated caller. Nothing was run.",
	},
	{
		Code: CodeInProgress, Status: 409, Title: "Request in progress", Retryable: true,
		Detail: "The first request with this {header} is still running. Retry with the same one to get its response.",
	},
	{
		Code: CodeOutcomeUnknown, Status: 409, Title: "Outcome unknown",
		Detail: "The first request with this {header} ended without a recorded outcome, and is not run again. It may have taken effect.",
	},
	{
		Code: CodeResultUnavailable, Status: 409, Title: "Result unavailable",
		Detail: "The first request with this {header} ran, and its response was not kept. It is not run again.",
	},
	{
		Code: CodeRequestTooLarge, Status: 413, Title: "Request too large",
		Detail: "The request body is larger than a request with a {header} may have. Nothing was run.",
	},
	{
		Code: CodeKeyReused, Status: 422, Title: "Idempotency key reused",
		Detail: "This {header} belongs to a different request. Nothing was run; send a new request with a new one.",
	},
	{
		Code: CodeStoreUnavailable, Status: 503, Title: "Store unavailable", Retryable: true,
		Detail: "Whether this {header} was used before could not be determined. Retry with the same one.",
	},
	{
		Code: CodeNotApplied, Status: 503, Title: "Not applied", Retryable: true,
		Detail: "The request ran and everything that it did was undone. Retry with the same {header}.",
	},
	{
		Code: CodeRecordCorrupt, Status: 500, Title: "Record corrupt",
		Detail: "What is recorded for this {header} cannot be read. Nothing was run.",
	},
	{
		Code: CodeResponseTooLarge, Status: 500, Title: "Response too large",
		Detail: "The response is larger than can be recorded, so everything that the request with this {header} did was undone.",
	},
}

// problems makes the answers of one guard. It is immutable and safe for concurrent use.
type problems struct {
	base       string
	headerName string
	write      func(Problem) Response
	ready      map[Code]prepared
}

// prepared is a problem with its answer, as far as that is always the same.
type prepared struct {
	problem  Problem
	response Response
}

// newProblems returns the answers whose type URIs begin with base and whose details name the header headerName. write
// makes the responses of them; nil makes application/problem+json.
func newProblems(base, headerName string, write func(Problem) Response) problems {
	ps := problems{base: base, headerName: headerName, write: write, ready: make(map[Code]prepared, len(problemTable))}
	for _, p := range problemTable {
		p.Type = base + string(p.Code)
		p.Detail = strings.ReplaceAll(p.Detail, "{header}", headerName)
		ps.ready[p.Code] = prepared{problem: p, response: problemResponse(p)}
	}
	return ps
}

// answer returns the response for code, which is one of the constants. retryAfter is what the client should wait, rounded
// up to whole seconds; it is left out where it is not positive, or a retry makes no sense.
func (ps *problems) answer(code Code, retryAfter time.Duration) Response {
	ready := ps.ready[code]
	if retryAfter > 0 && ready.problem.Retryable {
		ready.problem.RetryAfter = retryAfter
	}
	if ps.write != nil {
		return ps.custom(ready.problem)
	}
	if ready.problem.RetryAfter > 0 {
		ready.response.Header = problemHeader(ready.problem)
	}
	return ready.response
}

// answerKey returns the response for a key that [keyGrammar.parse] refused, with what is wrong with it.
func (ps *problems) answerKey(err error) Response {
	p := ps.ready[CodeKeyInvalid].problem
	var bad keyError
	if errors.As(err, &bad) {
		p.Detail = "The " + ps.headerName + " header " + string(bad) + ". Nothing was run."
	}
	if ps.write != nil {
		return ps.custom(p)
	}
	return problemResponse(p)
}

// custom asks the configured writer, and adds what an answer may not lack: a status, and that no cache keeps it.
func (ps *problems) custom(p Problem) Response {
	r := ps.write(p)
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
		r.Header = Header{fields: slices.AppendSeq(missing, r.Header.All())}
	}
	return r
}

var noStore = Field{Name: "Cache-Control", Value: "no-store"}

// problemResponse is the answer that a guard gives on its own: RFC 9457, in JSON.
func problemResponse(p Problem) Response {
	return Response{Status: p.Status, Header: problemHeader(p), Body: problemBody(p)}
}

// problemHeader includes where the header of the key is documented, for those who did not know about it.
func problemHeader(p Problem) Header {
	fields := []Field{{Name: "Content-Type", Value: "application/problem+json"}, noStore}
	if p.RetryAfter > 0 {
		fields = append(fields, retryAfterField(p.RetryAfter))
	}
	if p.Code == CodeKeyMissing || p.Code == CodeKeyInvalid {
		fields = append(fields, Field{Name: "Link", Value: "<" + p.Type + `>; rel="describedby"`})
	}
	return Header{fields: fields}
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
