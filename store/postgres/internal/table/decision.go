package table

import "github.com/reprise-go/reprise/core/store"

// The words for what a claim makes of the row that it sees: see [Seen.Decide].
const (
	wordCorrupt    = "corrupt" // this release cannot read the row
	wordNew        = "new"
	WordTakeover   = "takeover"
	wordAgain      = "again"
	wordMismatch   = "mismatch"
	wordCompleted  = "completed"
	wordExpired    = "expired"
	wordInProgress = "in progress"
	wordOwnLapsed  = "own lapsed"
	wordLapsed     = "lapsed"
)

// Decision is what a claim makes of the row that it sees.
type Decision struct {
	Word      string
	Attempt   int
	Fence     int64
	leaseLeft int64 // µs
	Payload   []byte
}

// Result is the result of a decision that does not rewrite the row, for a claim of the
// leased store.
func (d *Decision) Result() (store.ClaimResult, error) {
	left := FromMicroseconds(d.leaseLeft)
	switch d.Word {
	case wordOwnLapsed:
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
	default:
		return store.ClaimResult{}, Corrupt("claim")
	}
}

// Rewrites reports whether a claim of the leased store has to write the row that it saw.
func (d *Decision) Rewrites() bool {
	return d.Word == wordNew || d.Word == wordAgain || d.Word == WordTakeover
}

// Claimable reports whether the claim may have another attempt than that of the row. A
// claim of the transactional store is granted then, where it has the lock of the record.
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
