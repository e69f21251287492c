package operate

import (
	"errors"
	"fmt"
	"strings"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Need says who has to act on a record.
type Need uint8

// The needs, the most urgent first.
const (
	NeedsPerson Need = iota + 1 // it stays as it is, and its client is refused, until a person resolves it
	NeedsRetry                  // the next retry takes it over
	NeedsNone
)

// String returns the need as a listing shows it: "person", "retry", or empty for none.
func (n Need) String() string { return [...]string{"", "person", "retry", ""}[n] }

// NeedOf returns who has to act on r, which follows from the next answer to its client:
// see [NextOf], also about the guards. The answer of a completed record in a listing is
// not read, and counts as one that can be.
func NeedOf(r *store.Record, guards ...*protocol.Guard) Need {
	if unread(r) {
		return NeedsNone
	}
	switch NextOf(r, guards...).Outcome {
	case reprise.Lapsed, reprise.Corrupt:
		return NeedsPerson
	case reprise.Claimed:
		return NeedsRetry
	default: // it is answered, or an attempt runs
		return NeedsNone
	}
}

// MayNeedPerson are the states in which a record may need a person, beside those that
// are completed: a listing does not read their answers.
const MayNeedPerson = store.RecordStates(1<<store.StateLapsed | 1<<store.StateUnknown | 1<<store.StateUnreadable)

// unread reports whether r is of a listing, which has no payloads.
func unread(r *store.Record) bool {
	return r != nil && r.State == store.StateCompleted && r.Payload == nil && r.Size > 0
}

// Answer is the result that a completed record keeps for its retries.
type Answer struct {
	Response protocol.Response // as far as it can be read; empty for a result of [job.Do]
	Err      error             // why it is not whole, or no response: see [Decode]

	// Result describes a result of [job.Do], such as "a value of 12 bytes". It is empty for
	// a response.
	Result string

	// Failed reports that every retry gets a failure: a status of 500 or more, or an error
	// that is not the answer of its function.
	Failed bool
}

// AnswerOf returns the result that r keeps, and false if it keeps none, or is of a
// listing, which has no results.
func AnswerOf(r *store.Record) (a Answer, ok bool) {
	if r.State != store.StateCompleted || unread(r) {
		return a, false
	}
	return readAnswer(r.Payload), true
}

func readAnswer(payload []byte) (a Answer) {
	switch a.Result = job.DescribeResult(payload); a.Result {
	case "":
		a.Response, a.Err = Decode(payload)
		a.Failed = a.Response.Status >= 500
	case "unreadable":
		a.Err = fmt.Errorf("%w: the result of job.Do is unreadable", store.ErrCorrupt)
	default:
		a.Err = errors.New("not an HTTP response, but a result of job.Do: it is " + a.Result)
		a.Failed = strings.HasPrefix(a.Result, "a failure") || a.Result == "a panic"
	}
	return a
}

// StateNamed returns the state with a name, in any case, and false if there is none.
func StateNamed(name string) (store.RecordState, bool) {
	for s := store.StateRunning; s <= store.StateUnknown; s++ {
		if strings.EqualFold(s.String(), name) {
			return s, true
		}
	}
	return 0, false
}
