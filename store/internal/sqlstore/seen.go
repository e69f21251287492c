package sqlstore

import (
	"bytes"
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// The values of the columns version and state of a row that this release can read.
const (
	Version   = 1
	Running   = 1
	Completed = 2
)

// Seen is the row that a statement found in the table, or the one that a claim wrote, or
// none.
type Seen struct {
	Found       bool // there is a row, and the statement did not write it
	Version     int16
	State       int16
	Owner       []byte
	Fingerprint []byte
	Attempt     int
	Fence       int64
	LeaseUntil  int64 // instants are in microseconds since 1970
	ValidUntil  int64
	AtMostOnce  bool
	Payload     []byte // nil in a completed row whose replay has ended

	// At is a clock that was read before the snapshot of the statement was taken. By a
	// clock that is read later, a record that was renewed in between could seem to have
	// lapsed.
	At int64
}

// Readable reports whether this release can read the row.
func (r *Seen) Readable() bool {
	return r.Version == Version && (r.State == Running || r.State == Completed) &&
		len(r.Owner) == len(store.Owner{}) && len(r.Fingerprint) == len(store.Fingerprint{}) &&
		(r.State == Completed || r.Payload == nil)
}

// live reports whether an attempt holds the record.
func (r *Seen) live() bool { return r.State == Running && r.LeaseUntil > r.At }

// decide answers a claim that finds the row, in the order of the Store contract. writes
// says that the answer holds once the row is written with the attempt and the fence of
// the result. db is the name of the database, for the text of an error.
func (r *Seen) decide(db string, c *store.ClaimRequest) (result store.ClaimResult, writes bool, err error) {
	live := r.live()
	own := bytes.Equal(r.Owner, c.Owner[:])
	left := span(r.LeaseUntil - r.At)
	next := max(r.Fence+1, r.At)
	switch {
	case !r.Found:
		return Granted(1, next, c.Lease), true, nil
	case !r.Readable():
		return result, false, corrupt(db, "claim")
	case !live && r.ValidUntil <= r.At:
		return Granted(1, next, c.Lease), true, nil
	case !bytes.Equal(r.Fingerprint, c.Fingerprint[:]):
		result.Outcome = store.Mismatch
	case r.State == Completed && r.Payload == nil:
		result.Outcome = store.Expired
	case r.State == Completed:
		result.Outcome, result.Payload = store.Completed, r.Payload
	case live && own:
		return Granted(r.Attempt, r.Fence, c.Lease), true, nil
	case live:
		result.Outcome, result.Remaining = store.InProgress, left
	case own:
		result = Granted(r.Attempt, r.Fence, left)
	case r.AtMostOnce || !c.Takeover || (c.MaxAttempts > 0 && r.Attempt >= c.MaxAttempts):
		result.Outcome = store.Lapsed
	default:
		return Granted(r.Attempt+1, next, c.Lease), true, nil
	}
	return result, false, nil
}

// Answer is decide by a row that others may be writing. answered says that the answer
// holds without a write, and whatever they write. That the record has lapsed does not,
// but for an unknown outcome, whose lease ends at 0: another transaction may have renewed
// or completed it in time, and commit later.
func (r *Seen) Answer(db string, c *store.ClaimRequest) (result store.ClaimResult, answered bool, err error) {
	result, writes, err := r.decide(db, c)
	return result, !writes && (result.Outcome != store.Lapsed || r.LeaseUntil == 0), err
}

// Granted is the answer to a claim that has the record, of whose lease so much is left.
func Granted(attempt int, fence int64, left time.Duration) store.ClaimResult {
	return store.ClaimResult{
		Outcome: store.Claimed, Attempt: attempt, Fence: uint64(fence), //nolint:gosec // fences are positive
		Remaining: left.Truncate(time.Microsecond),
	}
}

// corrupt is the error of the operation op for a record that this release cannot read.
func corrupt(db, op string) error {
	return fmt.Errorf("%w: %s: %s: this release does not know a version, state or field of the record", store.ErrCorrupt, db, op)
}

// endedOwner returns the replacement of the owner in the record of an unknown outcome:
// the owner with its bits inverted. Only a repeated Unknown of that owner matches it.
func endedOwner(owner store.Owner) []byte {
	for i := range owner {
		owner[i] = ^owner[i]
	}
	return owner[:]
}
