package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/internal/bounds"
	"github.com/reprise-go/reprise/core/internal/digest"
	"github.com/reprise-go/reprise/core/internal/text"
)

// MaxPage is the largest number of records in one [Page].
const MaxPage = 10_000

// An Inspector lets an operator see records and resolve those whose outcome is unknown.
type Inspector interface {
	// Inspect returns the record of id, or ErrNotFound when none is seen. A record that
	// this release cannot read is a Record in StateUnreadable, not an error.
	Inspect(ctx context.Context, id ID) (Record, error)

	// List returns the next page of the visible records that q selects, in no particular
	// order. One call reads about 10,000 records at most, whether they match or not, so a
	// caller can show progress and stop. It is for people: a record that matches during the
	// whole listing is shown at least once; one that changes meanwhile may be missing, shown
	// twice, or out of date. The error wraps ErrInvalid when a field of q is out of its
	// range, or q.After is a cursor of another store.
	List(ctx context.Context, q Query) (Page, error)

	// Resolve ends a record on behalf of an operator, if it is still the one that the
	// operator inspected: r.Fence is its fence, and r.State its state. Otherwise Resolve
	// returns ErrRecordChanged and leaves the record. It never ends a live attempt.
	//
	// A lapsed or unknown record gets a result or is forgotten, by an operator who knows the
	// effect of its last attempt. A result is replayed for r.Retention, and the record then
	// kept for the Horizon of its policy, and in any case for as long as it would have been
	// kept without the operator.
	//
	// A completed, expired or unreadable record can only be forgotten. That takes back what
	// its policy promised: the ID is new, whatever is left of its retention and its Horizon,
	// so the next request with it runs, even if the operation has been done.
	//
	// A store keeps r.Payload as it is. Retries get it, so it must have the form that their
	// reader expects: for records of the package protocol, the result of Encode of the
	// package operate, whose function Resolve encodes and resolves. Any other payload makes
	// every retry a 500 record-corrupt until the retention ends.
	Resolve(ctx context.Context, id ID, r Resolution) error
}

// RecordState is the state of a [Record], as it matters to an operator.
type RecordState uint8

// The states of a record. The zero value is not one of them.
const (
	StateRunning    RecordState = iota + 1 // an attempt holds it, and its lease runs
	StateLapsed                            // the lease of its last attempt ran out: the outcome is unknown
	StateCompleted                         // it has a result, which retries get
	StateExpired                           // its result was deleted when its retention ended; retries are refused
	StateUnreadable                        // this release does not know its form; requests get an error
	StateUnknown                           // its last attempt said that the outcome is unknown: see Record.Reason
)

// String returns the state as it appears in logs and in the programs for operators.
func (s RecordState) String() string { return text.Name(stateNames[:], int(s)) }

// WasCompleted reports whether a record in the state was completed: it has a result, or
// had one until its retention ended.
func (s RecordState) WasCompleted() bool { return s == StateCompleted || s == StateExpired }

var stateNames = [...]string{
	StateRunning: "running", StateLapsed: "lapsed", StateCompleted: "completed",
	StateExpired: "expired", StateUnreadable: "unreadable", StateUnknown: "unknown",
}

// RecordStates is a set of states. The zero value selects every state.
type RecordStates uint32

// States returns the set of the given states.
func States(list ...RecordState) RecordStates {
	var set RecordStates
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

// Has reports whether the set selects s.
func (set RecordStates) Has(s RecordState) bool { return set == 0 || set&(1<<s) != 0 }

// Record is a visible record as an [Inspector] shows it, without its owner. Of an
// unreadable record only the ID and the Fence are sure to be set.
type Record struct {
	ID     ID
	State  RecordState
	Policy // that its last attempt claimed it with

	Fingerprint Fingerprint // of its request: see Key
	Description string      // of the request of its last attempt, for operators only; empty without one

	Attempt int    // the number of its last attempt
	Fence   uint64 // of its last attempt; of an unreadable record a number that changes with every write of it

	// ClaimedAt is when its last attempt claimed it, and CompletedAt when it was completed
	// (zero before that), by the store's clock.
	ClaimedAt   time.Time
	CompletedAt time.Time
	Resolved    bool // an operator completed it: see [Inspector]

	Reason string // of StateUnknown: why the outcome is unknown, as its last attempt said; for operators only

	Lease    time.Duration // the rest of the lease; zero or less if it lapsed, zero if it is completed
	Validity time.Duration // how long the record stays visible

	Size    int    // of the payload in bytes, 0 without one
	Payload []byte // of a record in StateCompleted; not set by List. It must not be modified
}

// Key returns the idempotency key that the attempts of r pass to the downstream call with
// this name (see AttemptView.Key of package reprise), so that the called system can be
// asked about it.
func (r *Record) Key(name string) string {
	return digest.DownstreamKey(r.ID, r.Fingerprint, name)
}

// ProbeLabel is the label of the records that belong to no request: those on which a
// store tries its operations, and the lock of the process that counts stuck records. A
// listing shows them only to a query for this label, so that no operator takes one for
// the record of a request.
const ProbeLabel = "reprise:probe"

// Stuck reports whether the record waits for an operator: its outcome is unknown, and no
// retry runs the operation again. A record that lapsed and is not AtMostOnce is not, even
// if its last request was refused because of its MaxAttempts, which no record keeps.
func (r *Record) Stuck() bool {
	return r.State == StateUnknown || r.State == StateLapsed && r.AtMostOnce
}

// Query selects records. See [Inspector].
type Query struct {
	States    RecordStates  // only these; zero is all
	Label     string        // only records with this label; empty is all but those of ProbeLabel
	OlderThan time.Duration // only records whose last attempt claimed them at least this long ago; unreadable ones always
	Digits    string        // only records whose ID begins with these hexadecimal digits, in lower case; empty is all
	After     string        // [Page].Next of the page before; empty starts at the beginning
	Limit     int           // records in the page, 1 to [MaxPage]
}

// Selects reports whether q selects r at the instant at, by the store's clock.
func (q *Query) Selects(r *Record, at time.Time) bool {
	if !strings.HasPrefix(r.ID.String(), q.Digits) || !q.States.Has(r.State) || q.Label != r.Label && (q.Label != "" || r.Label == ProbeLabel) {
		return false
	}
	return q.OlderThan <= 0 || r.State == StateUnreadable || at.Sub(r.ClaimedAt) >= q.OlderThan
}

// Page is a part of a listing. See [Inspector].
type Page struct {
	Records []Record // may be empty although there are more
	Next    string   // where the next page starts, for [Query].After; empty at the end
	Scanned int      // how many records this call looked at
	Total   int64    // an estimate of the records that the whole listing reads; 0 is unknown
}

// Resolution is an operator's decision about a record. See [Inspector].
type Resolution struct {
	// State and Fence are those of the record as it was inspected. An attempt that lapsed
	// can still complete, or say that its outcome is unknown, with the same fence: so State
	// is compared as well. Zero and StateUnknown are the same here, a lapsed or an unknown
	// record, and so are StateCompleted and StateExpired.
	State RecordState
	Fence uint64

	Forget    bool          // forget the record: the next request with the key runs
	Payload   []byte        // or keep this as its result: see Encode of package operate; ignored with Forget
	Retention time.Duration // of the result; ignored with Forget
}

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every
// inspector calls it first.
func (q *Query) Validate() error {
	switch {
	case q.Limit < 1 || q.Limit > MaxPage:
		return fmt.Errorf("%w: Query.Limit is %d, want 1 to %d", ErrInvalid, q.Limit, MaxPage)
	case strings.Trim(q.Digits, "0123456789abcdef") != "" || len(q.Digits) > 2*len(ID{}):
		return fmt.Errorf("%w: Query.Digits is not the beginning of an ID: want up to %d hexadecimal digits in lower case", ErrInvalid, 2*len(ID{}))
	case q.OlderThan < 0:
		return fmt.Errorf("%w: Query.OlderThan is %v, want 0 or more", ErrInvalid, q.OlderThan)
	}
	return bounds.Text("Query.Label", q.Label, MaxLabel)
}

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every
// inspector calls it first.
func (r *Resolution) Validate() error {
	switch {
	case r.Fence == 0:
		return fmt.Errorf("%w: Resolution.Fence is 0, want that of the record as it was inspected", ErrInvalid)
	case r.State == StateRunning || r.State > StateUnknown:
		return fmt.Errorf("%w: Resolution.State is %v, which cannot be resolved", ErrInvalid, r.State)
	case r.Forget:
		return nil
	case r.State.WasCompleted() || r.State == StateUnreadable:
		return fmt.Errorf("%w: Resolution.State is %v, so the record can only be forgotten", ErrInvalid, r.State)
	case len(r.Payload) > MaxPayload:
		return fmt.Errorf("%w: Resolution.Payload has %d bytes, want %d at most", ErrInvalid, len(r.Payload), MaxPayload)
	}
	return bounds.Duration("Resolution.Retention", r.Retention)
}
