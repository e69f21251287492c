package record

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
	atomic := func(word string) (store.Outcome, error) {
		d := Decision{Word: word}
		got, err := d.AtomicResult("db")
		return got.Outcome, err
	}
	for _, test := range []struct {
		word           string
		leased, atomic store.Outcome
		err            error
	}{
		{WordOwnLapsed, store.Claimed, store.Lapsed, nil},
		{WordAgain, 0, store.InProgress, nil},
		{WordInProgress, store.InProgress, store.InProgress, nil},
		{WordCompleted, store.Completed, store.Completed, nil},
		{WordExpired, store.Expired, store.Expired, nil},
		{WordMismatch, store.Mismatch, store.Mismatch, nil},
		{WordLapsed, store.Lapsed, store.Lapsed, nil},
		{WordCorrupt, 0, 0, store.ErrCorrupt},
		{"a word of another release", 0, 0, store.ErrCorrupt},
	} {
		if got, err := result(test.word); test.word != WordAgain && (got != test.leased || !errors.Is(err, test.err)) {
			t.Errorf("%s: %v, %v", test.word, got, err)
		}
		if got, err := atomic(test.word); got != test.atomic || !errors.Is(err, test.err) {
			t.Errorf("%s of the transactional store: %v, %v", test.word, got, err)
		}
	}
}
