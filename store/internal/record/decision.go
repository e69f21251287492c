// Package record decides about a claim by the row of a record that it finds in a
// database, in the order of the Store contract. It is the part of a store that all
// databases share; it knows no statement and no client.
package record

import (
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// The decisions about a claim: see [Seen.Decide].
const (
	WordCorrupt    = "corrupt" // this release cannot read the row
	WordNew        = "new"
	WordTakeover   = "takeover"
	WordAgain      = "again"
	WordMismatch   = "mismatch"
	WordCompleted  = "completed"
	WordExpired    = "expired"
	WordInProgress = "in progress"
	WordOwnLapsed  = "own lapsed"
	WordLapsed     = "lapsed"
)

// Decision is the decision about a claim, by the row that it found.
type Decision struct {
	Word      string
	Attempt   int
	Fence     int64
	leaseLeft int64 // µs
	Payload   []byte
}

// Result returns the result of a claim whose decision does not rewrite the row. db is the
// name of the database, for the text of an error.
func (d *Decision) Result(db string) (store.ClaimResult, error) {
	left := time.Duration(d.leaseLeft) * time.Microsecond
	switch d.Word {
	case WordOwnLapsed:
		return store.ClaimResult{Outcome: store.Claimed, Attempt: d.Attempt, Fence: uint64(d.Fence), Remaining: left}, nil //nolint:gosec // fences are positive
	case WordInProgress:
		return store.ClaimResult{Outcome: store.InProgress, Remaining: left}, nil
	case WordCompleted:
		return store.ClaimResult{Outcome: store.Completed, Payload: d.Payload}, nil
	case WordExpired:
		return store.ClaimResult{Outcome: store.Expired}, nil
	case WordMismatch:
		return store.ClaimResult{Outcome: store.Mismatch}, nil
	case WordLapsed:
		return store.ClaimResult{Outcome: store.Lapsed}, nil
	default:
		return store.ClaimResult{}, Corrupt(db, "claim")
	}
}

// Rewrites reports whether a claim has to write the row that it saw.
func (d *Decision) Rewrites() bool {
	return d.Word == WordNew || d.Word == WordAgain || d.Word == WordTakeover
}

// Claimable reports whether the claim may begin a new attempt.
func (d *Decision) Claimable() bool { return d.Word == WordNew || d.Word == WordTakeover }

// Corrupt is the error of the operation op for a record that this release cannot read.
func Corrupt(db, op string) error {
	return fmt.Errorf("%w: %s: %s: this release does not know a version, state or field of the record", store.ErrCorrupt, db, op)
}

// EndedOwner returns the replacement of the owner in the record of an unknown outcome:
// the owner with its bits inverted. Only a repeated Unknown of that owner matches it.
func EndedOwner(owner store.Owner) []byte {
	for i := range owner {
		owner[i] = ^owner[i]
	}
	return owner[:]
}
