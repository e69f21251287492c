package command

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/store"
)

// A record whose body is in a blob store is shown with its head, and with the size and
// the name of the body.
func TestOffloadedResponseIsShown(t *testing.T) {
	t.Parallel()
	payload, err := hex.DecodeString("010800c80001000000190000002d00000c0008436f6e74656e742d54797065746578742f637376" +
		"01000000000000002bd7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e5920000512bb00551b1")
	if err != nil {
		t.Fatal(err)
	}
	const name = "20261122/d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592"
	r := store.Record{State: store.StateCompleted, Payload: payload}
	out := newAnswerJSON(answerOf(&r), true)
	if out.Status != 200 || out.BodySize != 43 || out.Blob != name || len(out.Header) != 1 || out.Body != nil {
		t.Errorf("shows %+v", out)
	}
	if next := nextFor(&r); !strings.Contains(next, "43 bytes from the blob store") || !strings.HasPrefix(next, "200, marked") {
		t.Errorf("says %q", next)
	}
	if lines := answerLines(answerOf(&r), true); len(lines) != 3 {
		t.Errorf("prints %v", lines)
	}
}

// A failure that Do keeps is a failure, and a result that it cannot read is unreadable.
func TestResultOfDoIsShown(t *testing.T) {
	t.Parallel()
	kept, err := job.EncodeResult(nil, 0, errors.New("the bank refused"))
	if err != nil {
		t.Fatal(err)
	}
	for state, payload := range map[string][]byte{"completed (a failure)": kept, "completed (unreadable)": kept[:len(kept)-1]} {
		r := store.Record{State: store.StateCompleted, Payload: payload}
		if got := stateOf(&r).Text; got != state {
			t.Errorf("the state is %q, want %q: %s", got, state, nextFor(&r))
		}
	}
}
