package edges_test

import (
	"bytes"
	"context"
	"testing"
)

// ruleCase is one rule of docs/engineering/protocol.md for unary calls.
type ruleCase struct {
	id   string // of the rule, and a word
	rule string // printed when the case fails
	run  func(*env)
}

var ruleCases = []ruleCase{
	{"R6-repeated", "more than one line with a key is refused", keyRepeated},
	{"R9-unkeyed", "calls without a key pass through, as do reads and health checks with one", passes},
	{"R11-marks", "the first run has no marks, not even those that the handler sets", marks},
	{"R12-message", "a retry gets the same message, and the handler does not run", message},
	{"R13-metadata", "header and trailer are replayed with value, number, order and bytes; those of outer layers are not", metadataKept},
	{"R17-trailer", "a trailer is replayed as a trailer", trailerKept},
	{"R20-duplicates", "of simultaneous calls one runs, and the others get ABORTED with the time to wait", duplicates},
	{"R22-message", "a key with another message is refused, and the record stays", otherMessage},
	{"R22-method", "a key at another procedure is refused", otherMethod},
	{"R23-cancelled", "a client that cancels stops neither the run nor the recording, and its deadline does not reach the run", cancelled},
	{"R25-metadata", "other metadata, and the order of a map, make no other call", sameCall},
	{"R31-details", "an error is replayed with message, details and metadata", errorKept},
	{"R33-panic", "a panic, and an error without a usable status, are released or kept by preset and never replayed as a success", failures},
	{"R34-stream", "a streaming call passes through, and a key on it is said to be of no use", streams},
	{"R41-unrecorded", "a result that cannot be recorded is sent, and marked", unrecorded},
	{"R42-corrupt", "a record that cannot be read is a failure, and nothing runs", corruptRecord},
	{"R43-scope", "a principal gets no other's result", scopes},
	{"R45-refusals", "a refusal has an ErrorInfo, and where a retry helps a RetryInfo", refusals},
	{"G3-superseded", "a run that lost its lease gets the result of the other one", superseded},
	{"R48-field", "the key may be a field of the message, by its name in the schema or in JSON", keyInField},
	{"R48-absent", "a message that has no such field, or in which it is not set, has no key", keyFieldAbsent},
	{"R48-invalid", "a field that has no valid key is refused, and never ignored", keyFieldInvalid},
	{"attempt", "the handler knows its attempt, and its context is cancelled when the lease is lost", attempt},
}

// TestRules runs every case with every client and server.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, target := range targets {
		t.Run(target.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range ruleCases {
				t.Run(c.id, func(t *testing.T) {
					t.Parallel()
					t.Cleanup(func() {
						if t.Failed() {
							t.Logf("the rule: %s", c.rule)
						}
					})
					c.run(&env{T: t, target: target})
				})
			}
		})
	}
}

// same fails unless two responses are one to a client.
func (e *env) same(first, again answer) {
	e.Helper()
	if !bytes.Equal(again.body, first.body) || again.code != first.code || again.message != first.message {
		e.Errorf("the retry got %d %q and %d bytes, the first call %d %q and %d bytes",
			again.code, again.message, len(again.body), first.code, first.message, len(first.body))
	}
	if len(again.details) != len(first.details) {
		e.Fatalf("the retry got the details %v, the first call %v", again.details, first.details)
	}
	for i := range first.details {
		if again.details[i] != first.details[i] {
			e.Errorf("the retry got the detail %s, the first call %s", again.details[i], first.details[i])
		}
	}
}

// twice calls twice with one key, and wants one run and a marked replay.
func (e *env) twice(s *service, c call) (first, again answer) {
	e.Helper()
	before := s.runs.Load()
	first, again = e.call(s, c), e.call(s, c)
	e.wantRuns(s, before+1)
	e.same(first, again)
	if first.replayed() || !again.replayed() {
		e.Errorf("the first answer is marked: %v, the second: %v", first.replayed(), again.replayed())
	}
	return first, again
}

// refused fails unless the call is refused with this code and reason, and without a run.
func (e *env) refused(s *service, c call, code uint32, reason string) answer {
	e.Helper()
	before := s.runs.Load()
	a := e.call(s, c)
	e.wantRuns(s, before)
	if a.code != code || reasonOf(a) != reason || a.replayed() {
		e.Errorf("%v is answered with %d %q (%s), want %d and %s", c, a.code, a.message, reasonOf(a), code, reason)
	}
	return a
}

// hold returns a handler that says that it runs and waits until it is let go.
func hold() (h handler, running chan struct{}, letGo func()) {
	running, gate := make(chan struct{}, 64), make(chan struct{})
	return func(context.Context, *request) outcome {
		running <- struct{}{}
		<-gate
		return outcome{body: []byte("done")}
	}, running, func() { close(gate) }
}
