package console

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"
)

// A record whose body is in a blob store shows its head, and the size and name of the
// body, and offers no body to show.
func TestOffloadedResponseIsShown(t *testing.T) {
	t.Parallel()
	payload, err := hex.DecodeString("010800c80001000000190000002d00000c0008436f6e74656e742d54797065746578742f637376" +
		"01000000000000002bd7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e5920000512bb00551b1")
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := operate.AnswerOf(&store.Record{State: store.StateCompleted, Payload: payload})
	view := showAnswer(&answer, len(payload))
	if view.Status != 200 || view.Size != 43 || !view.Elsewhere || len(view.Header) != 1 || view.Body != "" {
		t.Errorf("shows %+v", view)
	}
	if !strings.Contains(view.Problem, "20261122/d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592") {
		t.Errorf("says %q", view.Problem)
	}
}

// A failure that Do keeps, and a result that it cannot read, are shown as failures.
func TestFailureOfDoIsShown(t *testing.T) {
	t.Parallel()
	kept, err := job.EncodeResult(nil, 0, errors.New("the bank refused"))
	if err != nil {
		t.Fatal(err)
	}
	for failure, payload := range map[string][]byte{"a failure is kept": kept, "the answer cannot be read": kept[:len(kept)-1]} {
		record := store.Record{State: store.StateCompleted, Payload: payload}
		answer, _ := operate.AnswerOf(&record)
		view := recordView{Record: newRow(&record), Answer: showAnswer(&answer, len(payload))}
		if got := view.Failure(); got != failure {
			t.Errorf("says %q, want %q", got, failure)
		}
	}
}
