package reprisepg

import (
	"github.com/jackc/pgx/v5"

	reprise "github.com/reprise-go/reprise/core"
)

// The words of verdict.sql, and the two that only a claim answers: granted, and beaten by a rival each time.
const (
	wordClaimed    = "claimed"
	wordNew        = "new"
	wordTakeover   = "takeover"
	wordAgain      = "again"
	wordMismatch   = "mismatch"
	wordCompleted  = "completed"
	wordInProgress = "in progress"
	wordOwnLapsed  = "own lapsed"
	wordLapsed     = "lapsed"
	wordLostRace   = "lost race"
)

// verdict is one answer to a claim, as the server gives it.
type verdict struct {
	word      string
	attempt   int
	fence     int64
	leaseLeft int64 // µs
	payload   []byte
}

func (v *verdict) scan(rows pgx.Rows) error {
	return rows.Scan(&v.word, &v.attempt, &v.fence, &v.leaseLeft, &v.payload)
}

// answer is what the verdict means for a claim of the leased store.
func (v *verdict) answer() (reprise.ClaimResult, error) {
	left := fromMicroseconds(v.leaseLeft)
	switch v.word {
	case wordClaimed, wordOwnLapsed:
		return reprise.ClaimResult{Outcome: reprise.Claimed, Attempt: v.attempt, Fence: uint64(v.fence), Remaining: left}, nil //nolint:gosec // a sequence starts at 1
	case wordInProgress:
		return reprise.ClaimResult{Outcome: reprise.InProgress, Remaining: left}, nil
	case wordCompleted:
		return reprise.ClaimResult{Outcome: reprise.Completed, Payload: v.payload}, nil
	case wordMismatch:
		return reprise.ClaimResult{Outcome: reprise.Mismatch}, nil
	case wordLapsed:
		return reprise.ClaimResult{Outcome: reprise.Lapsed}, nil
	case wordLostRace:
		return reprise.ClaimResult{}, errLostRace
	default:
		return reprise.ClaimResult{}, corrupt("claim")
	}
}

// claimable reports whether a claim that has the lock of the record, where locks decide, is granted.
func (v *verdict) claimable() bool { return v.word == wordNew || v.word == wordTakeover }

// answerAtomic is what a verdict that is not claimable means for the transactional store, where whatever is in progress is a
// leased record. The caller's own is one only in a table that changed its store; it is another's then.
func (v *verdict) answerAtomic() (reprise.ClaimResult, error) {
	switch v.word {
	case wordAgain:
		v.word = wordInProgress
	case wordOwnLapsed:
		v.word = wordLapsed
	}
	return v.answer()
}
