package table

import (
	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
)

// The words of verdict.sql and seen.go, and the two that only the function of a claim
// answers: claimed, and lost race.
const (
	wordClaimed    = "claimed"
	wordNew        = "new"
	WordTakeover   = "takeover"
	wordAgain      = "again"
	wordMismatch   = "mismatch"
	wordCompleted  = "completed"
	wordExpired    = "expired"
	wordInProgress = "in progress"
	wordOwnLapsed  = "own lapsed"
	wordLapsed     = "lapsed"
	wordLostRace   = "lost race"
)

// Decision is the server's answer to a claim.
type Decision struct {
	Word      string
	Attempt   int
	Fence     int64
	leaseLeft int64 // µs
	Payload   []byte
}

// Scan reads the columns of a decision that a function of the schema made.
func (d *Decision) Scan(rows pgx.Rows) error {
	return rows.Scan(&d.Word, &d.Attempt, &d.Fence, &d.leaseLeft, &d.Payload)
}

// Result is the result of the decision for a claim of the leased store.
func (d *Decision) Result() (store.ClaimResult, error) {
	left := FromMicroseconds(d.leaseLeft)
	switch d.Word {
	case wordClaimed, wordOwnLapsed:
		return store.ClaimResult{Outcome: store.Claimed, Attempt: d.Attempt, Fence: uint64(d.Fence), Remaining: left}, nil //nolint:gosec // fences are positive
	case wordInProgress:
		return store.ClaimResult{Outcome: store.InProgress, Remaining: left}, nil
	case wordCompleted:
		return store.ClaimResult{Outcome: store.Completed, Payload: d.Payload}, nil
	case wordExpired:
		return store.ClaimResult{Outcome: store.Expired}, nil
	case wordMismatch:
		return store.ClaimResult{Outcome: store.Mismatch}, nil
	case wordLapsed:
		return store.ClaimResult{Outcome: store.Lapsed}, nil
	case wordLostRace:
		return store.ClaimResult{}, ErrLostRace
	default:
		return store.ClaimResult{}, Corrupt("claim")
	}
}

// Rewrites reports whether a claim of the leased store has to write the row that it saw.
func (d *Decision) Rewrites() bool {
	return d.Word == wordNew || d.Word == wordAgain || d.Word == WordTakeover
}

// Claimable reports whether a claim of the transactional store that has the lock of the
// record is granted.
func (d *Decision) Claimable() bool { return d.Word == wordNew || d.Word == WordTakeover }

// AtomicResult is the result of a decision that is not claimable for the transactional
// store, where a record in progress is a leased one. A record of the caller's own can
// only be one in a table that changed its store, so it counts as another owner's.
func (d *Decision) AtomicResult() (store.ClaimResult, error) {
	switch d.Word {
	case wordAgain:
		d.Word = wordInProgress
	case wordOwnLapsed:
		d.Word = wordLapsed
	}
	return d.Result()
}
