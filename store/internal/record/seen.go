package record

import (
	"bytes"

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

	Clock int64 // when the row was read, or later
}

// Readable reports whether this release can read the row.
func (r *Seen) Readable() bool {
	return r.Version == Version && (r.State == Running || r.State == Completed) &&
		len(r.Owner) == len(store.Owner{}) && len(r.Fingerprint) == len(store.Fingerprint{}) &&
		(r.State == Completed || r.Payload == nil)
}

// Decide returns the decision about a claim that finds the row. It checks in the order of
// the Store contract.
func (r *Seen) Decide(c *store.ClaimRequest) Decision {
	d := Decision{Word: r.word(c), Attempt: r.Attempt, Fence: r.Fence, leaseLeft: r.LeaseUntil - r.At}
	switch d.Word {
	case WordCompleted:
		d.Payload = r.Payload
	case WordNew, WordTakeover:
		d.Attempt = 1
		if d.Word == WordTakeover {
			d.Attempt = r.Attempt + 1
		}
		d.Fence = max(r.Fence+1, r.Clock)
	}
	return d
}

func (r *Seen) word(c *store.ClaimRequest) string {
	live := r.Found && r.State == Running && r.LeaseUntil > r.At
	own := bytes.Equal(r.Owner, c.Owner[:])
	switch {
	case !r.Found:
		return WordNew
	case !r.Readable():
		return WordCorrupt
	case !live && r.ValidUntil <= r.At:
		return WordNew
	case !bytes.Equal(r.Fingerprint, c.Fingerprint[:]):
		return WordMismatch
	case r.State == Completed && r.Payload == nil:
		return WordExpired
	case r.State == Completed:
		return WordCompleted
	case live && own:
		return WordAgain
	case live:
		return WordInProgress
	case own:
		return WordOwnLapsed
	case r.AtMostOnce || !c.Takeover || (c.MaxAttempts > 0 && r.Attempt >= c.MaxAttempts):
		return WordLapsed
	}
	return WordTakeover
}
