package record

import (
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// TestDecisionSaysWhatToWriteAndGrant: which words a store has to write for, and which
// begin a new attempt.
func TestDecisionSaysWhatToWriteAndGrant(t *testing.T) {
	t.Parallel()
	for _, word := range []string{
		WordNew, WordTakeover, WordAgain, WordMismatch, WordCompleted, WordExpired, WordInProgress, WordOwnLapsed, WordLapsed, WordCorrupt,
	} {
		d := Decision{Word: word, Attempt: 2, Fence: 40, leaseLeft: 1000, Payload: []byte("answer")}
		writes := word == WordNew || word == WordTakeover || word == WordAgain
		grants := word == WordNew || word == WordTakeover
		if d.Rewrites() != writes || d.Claimable() != grants {
			t.Errorf("%s: rewrites %t, claimable %t", word, d.Rewrites(), d.Claimable())
		}
	}
	result := func(word string) (store.Outcome, error) {
		d := Decision{Word: word}
		got, err := d.Result("db")
		return got.Outcome, err
	}
	for _, test := range []struct {
		word string
		want store.Outcome
		err  error
	}{
		{WordOwnLapsed, store.Claimed, nil},
		{WordInProgress, store.InProgress, nil},
		{WordCompleted, store.Completed, nil},
		{WordExpired, store.Expired, nil},
		{WordMismatch, store.Mismatch, nil},
		{WordLapsed, store.Lapsed, nil},
		{WordCorrupt, 0, store.ErrCorrupt},
		{"a word of another release", 0, store.ErrCorrupt},
	} {
		if got, err := result(test.word); got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %v, %v", test.word, got, err)
		}
	}
}
