package repriseclient

import (
	"net/http"
	"strings"
)

// call is the state of a [Transport]'s call. It is in the context of the response's
// request, and does not change after the response is returned.
type call struct {
	key      string // the caller's
	hash     string
	replayed string // the field that marks replays
	attempts int
	outcome  Outcome
	open     bool // an attempt before the one with the response may have reached the service
}

// callOf returns the call that resp answers, nil if resp is not of a [Transport].
func callOf(resp *http.Response) *call {
	if resp == nil || resp.Request == nil {
		return nil
	}
	c, _ := resp.Request.Context().Value(callOfContext).(*call)
	return c
}

// Attempts returns the number of attempts of the call that resp answers, or 0 if that is
// not a call that a [Transport] retries: a keyed one, or a listed one without a key.
func Attempts(resp *http.Response) int {
	if c := callOf(resp); c != nil {
		return c.attempts
	}
	return 0
}

// KeyOf returns the key of the call that resp answers, including one that the [Transport]
// generated, or an empty string if that is not a keyed call of a [Transport]. Give it to
// [WithKey] to retry later, where [GaveUp] is true. Keep it out of logs.
func KeyOf(resp *http.Response) string {
	if c := callOf(resp); c != nil {
		return c.key
	}
	return ""
}

// GaveUp reports whether resp is a response that the [Transport] would have retried if
// the bounds had allowed it, such as 409 in-progress or 503. It is not the operation's
// response: the operation may run, may have run, or may never run. Retry it later with
// the same key, if the call has one.
func GaveUp(resp *http.Response) bool { return OutcomeOf(resp) == GaveUpRetrying }

// OutcomeOf returns how the call that resp answers ended, or 0 if that is not a call that
// a [Transport] retries.
func OutcomeOf(resp *http.Response) Outcome {
	if c := callOf(resp); c != nil {
		return c.outcome
	}
	return 0
}

// Replayed reports whether the service says that resp is the recorded response of an
// earlier request with the key.
func Replayed(resp *http.Response) bool {
	if resp == nil {
		return false
	}
	name := defaultReplayed
	if c := callOf(resp); c != nil {
		name = c.replayed
	}
	return isReplay(resp.Header, name)
}

// isReplay reports whether a response has the mark of replays.
func isReplay(h http.Header, name string) bool {
	return name != "-" && strings.EqualFold(strings.TrimSpace(h.Get(name)), "true")
}

// The fields in which a service that uses Reprise describes the record of a response.
const (
	fieldBody   = "Idempotency-Body"
	fieldStatus = "Idempotency-Status"
)

// outcomeOf returns the outcome of a call with a response that no retry would change.
func (t *Transport) outcomeOf(h http.Header) Outcome {
	switch status := strings.TrimSpace(h.Get(fieldStatus)); {
	case strings.TrimSpace(h.Get(fieldBody)) == "omitted":
		return AnsweredOmitted
	case isReplay(h, t.service.Replayed):
		return AnsweredReplay
	case status == "unprotected":
		return AnsweredUnprotected
	case status == "unrecorded":
		return AnsweredUnrecorded
	}
	return Answered
}
