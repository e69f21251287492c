package repriseclient

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"mime"
	"net/http"
	"time"
)

// Code names the reason why a service that uses Reprise responded instead of its handler.
// docs/reference/problems.md explains each.
type Code string

// Problem is a problem document (RFC 9457) as a service that uses Reprise writes it.
type Problem struct {
	Code       Code
	Status     int // of the response
	Type       string
	Title      string
	Detail     string
	Retryable  bool          // whether the service says that the same request may succeed later
	RetryAfter time.Duration // of the field Retry-After; 0: there is none

	says *bool // the member retryable; nil: there is none
}

// maxProblem bounds the length of a problem document.
const maxProblem = 64 << 10

// ProblemOf returns the problem document of a response, and false if the response has
// another type, more than 64 KiB, or a body that is not the JSON of RFC 9457. It reads
// the body and puts it back, so that the caller can still read all of it.
//
// A handler may send its own problem documents; Code is then their member "code", or
// empty.
func ProblemOf(resp *http.Response) (Problem, bool) {
	if resp == nil || !hasProblem(resp) {
		return Problem{}, false
	}
	head, ok := peek(resp, maxProblem)
	if !ok {
		return Problem{}, false
	}
	p, ok := parseProblem(head)
	if !ok {
		return Problem{}, false
	}
	p.Status = resp.StatusCode
	p.RetryAfter, _ = retryAfter(resp.Header, time.Now())
	return p, true
}

// peek returns the body of a response and puts it back. It returns false if the body
// cannot be read, or has more bytes than a limit.
func peek(resp *http.Response, limit int64) ([]byte, bool) {
	if resp.Body == nil {
		return nil, false
	}
	head, more, err := readUpTo(resp.Body, limit)
	resp.Body = restored(head, err, resp.Body)
	return head, err == nil && !more
}

// hasProblem reports whether a response says that it is a problem document.
func hasProblem(resp *http.Response) bool {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // without a media type there are no parameters
	return media == "application/problem+json" && resp.Body != nil
}

// parseProblem reads the JSON of a problem. A member of another type than RFC 9457 gives
// it is ignored, as the RFC demands.
func parseProblem(body []byte) (Problem, bool) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return Problem{}, false
	}
	var p Problem
	for name, into := range map[string]any{
		"code": &p.Code, "type": &p.Type, "title": &p.Title, "detail": &p.Detail, "retryable": &p.says,
	} {
		if raw, ok := members[name]; ok {
			_ = json.Unmarshal(raw, into) // one of another type stays empty
		}
	}
	p.Retryable = p.says != nil && *p.says
	return p, true
}

// readUpTo reads r up to a limit, which is not negative, and one byte beyond where there
// are more.
func readUpTo(r io.Reader, limit int64) (head []byte, more bool, err error) {
	limit = min(limit, math.MaxInt64-1)
	head, err = io.ReadAll(io.LimitReader(r, limit+1))
	return head, int64(len(head)) > limit, err
}

// restored returns a body that yields the bytes read so far, and then the rest, or the
// error that ended the reading.
func restored(head []byte, err error, rest io.ReadCloser) io.ReadCloser {
	if err != nil {
		return &replayedBody{Reader: io.MultiReader(bytes.NewReader(head), failing{err}), Closer: rest}
	}
	return &replayedBody{Reader: io.MultiReader(bytes.NewReader(head), rest), Closer: rest}
}

type replayedBody struct {
	io.Reader
	io.Closer
}

// failing is a reader that only returns an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
