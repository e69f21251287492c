package reprisepg

import (
	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
)

// The words of verdict.sql and seen.go, and the two that only the function of a claim
// answers: claimed, and lost race.
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

// decision is the server's answer to a claim.
type decision struct {
	word      string
	attempt   int
	fence     int64
	leaseLeft int64 // µs
	payload   []byte

	// Of a completed record, where the claim asked for them, in µs.
	validLeft int64
	age       int64
}

func (d *decision) scan(rows pgx.Rows, more ...any) error {
	return rows.Scan(append([]any{&d.word, &d.attempt, &d.fence, &d.leaseLeft, &d.payload}, more...)...)
}

// result is what the decision means for a claim of the leased store.
func (d *decision) result() (store.ClaimResult, error) {
	left := fromMicroseconds(d.leaseLeft)
	switch d.word {
	case wordClaimed, wordOwnLapsed:
		return store.ClaimResult{Outcome: store.Claimed, Attempt: d.attempt, Fence: uint64(d.fence), Remaining: left}, nil //nolint:gosec // fences are positive
	case wordInProgress:
		return store.ClaimResult{Outcome: store.InProgress, Remaining: left}, nil
	case wordCompleted:
		return store.ClaimResult{Outcome: store.Completed, Payload: d.payload, Validity: fromMicroseconds(d.validLeft), Age: fromMicroseconds(d.age)}, nil
	case wordMismatch:
		return store.ClaimResult{Outcome: store.Mismatch}, nil
	case wordLapsed:
		return store.ClaimResult{Outcome: store.Lapsed}, nil
	case wordLostRace:
		return store.ClaimResult{}, errLostRace
	default:
		return store.ClaimResult{}, corrupt("claim")
	}
}

// rewrites reports whether a claim of the leased store has to write the row that it saw.
func (d *decision) rewrites() bool {
	return d.word == wordNew || d.word == wordAgain || d.word == wordTakeover
}

// claimable reports whether a claim of the transactional store that has the lock of the
// record is granted.
func (d *decision) claimable() bool { return d.word == wordNew || d.word == wordTakeover }

// atomicResult is what a decision that is not claimable means for the transactional
// store, where a record in progress is a leased one. A record of the caller's own can
// only be one in a table that changed its store, so it counts as another owner's.
func (d *decision) atomicResult() (store.ClaimResult, error) {
	switch d.word {
	case wordAgain:
		d.word = wordInProgress
	case wordOwnLapsed:
		d.word = wordLapsed
	}
	return d.result()
}
