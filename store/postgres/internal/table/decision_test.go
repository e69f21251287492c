package table

import (
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// TestDecisionSaysWhatToWriteAndGrant: which words the leased store has to write for, and
// which the transactional one grants.
func TestDecisionSaysWhatToWriteAndGrant(t *testing.T) {
	t.Parallel()
	for _, word := range []string{
		wordNew, WordTakeover, wordAgain, wordMismatch, wordCompleted, wordExpired, wordInProgress, wordOwnLapsed, wordLapsed, wordCorrupt,
	} {
		d := Decision{Word: word, Attempt: 2, Fence: 40, leaseLeft: 1000, Payload: []byte("answer")}
		writes := word == wordNew || word == WordTakeover || word == wordAgain
		grants := word == wordNew || word == WordTakeover
		if d.Rewrites() != writes || d.Claimable() != grants {
			t.Errorf("%s: rewrites %t, claimable %t", word, d.Rewrites(), d.Claimable())
		}
	}
	result := func(word string) (store.Outcome, error) {
		d := Decision{Word: word}
		got, err := d.Result()
		return got.Outcome, err
	}
	atomic := func(word string) (store.Outcome, error) {
		d := Decision{Word: word}
		got, err := d.AtomicResult()
		return got.Outcome, err
	}
	for _, test := range []struct {
		word           string
		leased, atomic store.Outcome
		err            error
	}{
		{wordOwnLapsed, store.Claimed, store.Lapsed, nil},
		{wordAgain, 0, store.InProgress, nil},
		{wordInProgress, store.InProgress, store.InProgress, nil},
		{wordCompleted, store.Completed, store.Completed, nil},
		{wordExpired, store.Expired, store.Expired, nil},
		{wordMismatch, store.Mismatch, store.Mismatch, nil},
		{wordLapsed, store.Lapsed, store.Lapsed, nil},
		{wordCorrupt, 0, 0, store.ErrCorrupt},
		{"a word of another release", 0, 0, store.ErrCorrupt},
	} {
		if got, err := result(test.word); test.word != wordAgain && (got != test.leased || !errors.Is(err, test.err)) {
			t.Errorf("%s: %v, %v", test.word, got, err)
		}
		if got, err := atomic(test.word); got != test.atomic || !errors.Is(err, test.err) {
			t.Errorf("%s of the transactional store: %v, %v", test.word, got, err)
		}
	}
}
