// Package store is the contract between an engine, which decides when an operation runs,
// and a store, which keeps its records. Users of a store do not need it: they pass the
// store to an engine or a guard. It is for those who implement or wrap a store, and for
// programs that inspect records.
//
// [Store] is the contract itself, and ends with "How to implement a Store". The other
// interfaces are abilities that a store may have, which [As] finds.
package store

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/internal/bounds"
	"github.com/reprise-go/reprise/core/internal/text"
)

// Store keeps idempotency records. A record says, for one [ID], who owns it, until when,
// and how the operation ended.
//
// An implementation is linearizable per ID: every operation takes effect at one instant
// between its call and its result, as if the operations on one ID ran one after the
// other. Different IDs never affect each other. All methods are safe for concurrent use,
// by any number of processes over one backing store.
//
// The store's clock decides, and only durations cross this interface. A deadline has
// passed at the instant that the clock reads it. Durations are between [MinDuration] and
// [MaxDuration]. A request outside its documented ranges is [ErrInvalid], before anything
// is read or written (see the Validate methods).
//
// # Records
//
// A record has a state (in progress or completed), an owner, a fingerprint, a [Policy], a
// description, the end of its lease, an instant until which it is valid, an attempt
// number, a fence, the instant of its claim, and, once completed, the instant of its
// completion and a payload. An attempt whose outcome is unknown also leaves a reason. A
// record is live while it is in progress and its lease runs, and seen while it is valid
// or live. To every operation, one that is not seen does not exist, purged or not. The
// owner holds a record that is seen and in progress, even if its lease has run out, until
// another takes it over or Unknown ends the attempt.
//
// A lease is a field of the record, not the lifetime of the key: the record of a lapsed
// attempt stays visible. Nor is the payload as old as the key: it is replayed for the
// retention of the policy and then gone, and the rest of the record is kept until the
// horizon has ended too. Gone means deleted: no file, memory or answer of the server has
// the bytes for longer than its next clean-up takes.
//
// # Repetition
//
// A reply may be lost and the call repeated, by the engine or by a client library on its
// own. Repeating a call with the same [Owner] gives the result of the first call. A store
// that waits for replicas writes again: newer servers acknowledge replication only for
// commands that propagated.
//
// # Errors
//
// Outcomes are values, errors are failures. A nil error is a definite result. Every other
// error wraps exactly one of the sentinels of this package. An error that the
// implementation cannot classify, such as a network error after the request may have
// left, is [ErrUnknown]; so is a context that ended while the call was on its way. A call
// with an ended context returns at once. An unreadable record is [ErrCorrupt], found
// before any write: it is never executed as new or served in part. No error contains a
// payload, an owner or anything that was not hashed.
//
// # Decorators
//
// A store that wraps another, to count, trace, delay or fail its calls, has a method
//
//	Unwrap() Store
//
// that returns the wrapped one, as a ResponseWriter has for
// [net/http.ResponseController]. [As] then finds the abilities of the wrapped store, and
// the decorator implements only those that it intercepts. A store with Unwrap adds no
// ability: As ignores one that the wrapped store does not have. A store that adds one has
// no Unwrap, and forwards the abilities that it keeps.
//
// # How to implement a Store
//
//  1. Choose the layout of a record, with a version, in one place that one write replaces
//     as a whole, so that no failure leaves half of it.
//  2. Use the clock of the server that keeps the records. Read it at the instant of the
//     decision, not at the start of a transaction or of a wait.
//  3. Write Claim as one atomic step that decides in the order of its comment.
//  4. Write Complete, Release and Unknown as compare-and-set on owner and state. Never
//     create a record in them. Answer that a record is not seen, or Lapsed, only while
//     no other call can write it: one that saw it before its end may commit later.
//  5. Write Renew for a batch. A locked record must not delay the renewal of the others.
//  6. Map every failure of the driver to a sentinel.
//  7. Add [Purger] and [Maintainer], unless what has ended is deleted without them, and
//     the abilities that the server makes cheap: [Waiter], [Inspector], [Checker].
//  8. Run the suite: storetest.Run, in the package
//     github.com/reprise-go/reprise/conformance/storetest. The folder examples/sqlstore
//     of the repository has a short store that passes it.
type Store interface {
	// Claim makes r.Owner the owner of r.ID, or says why not. It never waits for another
	// owner. It decides, in this order:
	//
	//	record not seen                                        → Claimed: attempt 1, a new fence
	//	fingerprint differs                                    → Mismatch
	//	completed, within its retention                        → Completed, with the payload; a replay writes no data
	//	completed, within its horizon                          → Expired, without a payload
	//	live and r.Owner's                                     → Claimed again: the lease starts anew, same attempt and fence
	//	live                                                   → InProgress, Remaining of the lease
	//	its owner said Unknown, with any Takeover              → Lapsed, to r.Owner too
	//	lapsed and r.Owner's, with any Takeover                → Claimed again, as it is: the engine renews it before it runs
	//	lapsed, and its own policy is AtMostOnce               → Lapsed
	//	lapsed, r.Takeover false or attempt ≥ r.MaxAttempts > 0 → Lapsed
	//	lapsed                                                 → Claimed (a takeover): attempt + 1, a higher fence
	//
	// A granted claim, but for that of a lapsed record of r.Owner, sets the lease to r.Lease
	// from now, the policy to r.Policy, the description to r.Description, and the validity
	// to the policy's Retention and Horizon from now. Fences of one ID grow strictly while
	// the store keeps its record, and do not fall when it is claimed anew.
	//
	// While another call is writing a lapsed record, a claim may answer InProgress: it
	// cannot know the result of that call without waiting for it.
	//
	// After an error the engine repeats the claim with the same owner, or calls Release.
	Claim(ctx context.Context, r ClaimRequest) (ClaimResult, error)

	// Renew extends the leases of a batch of attempts, each to its request's Lease from now.
	// It returns one status per request, in order. A record is renewed while its owner holds
	// it; its validity does not change. Entries are independent of each other: one that
	// fails is RenewBusy, and an unreadable record may be RenewLost. Only a failure of the
	// whole batch is an error, and then any part of it may have been renewed. An empty batch
	// is a no-op.
	Renew(ctx context.Context, rs []RenewRequest) ([]RenewStatus, error)

	// Complete ends the attempt of r.Owner and keeps r.Payload, for exactly r.Retention from
	// now. The record is valid for exactly r.Horizon longer. It succeeds while r.Owner holds
	// the record, and when r.Owner completed it before: then the payload of the first call
	// stays. Otherwise it returns ErrLeaseLost and changes no record.
	Complete(ctx context.Context, r CompleteRequest) error

	// Release deletes the record that owner holds, so that the next claim finds a free ID.
	// It also returns nil when owner holds none. It does not return nil while the server
	// still executes a claim of this owner, whose caller gave up: it waits for that claim,
	// or fails.
	Release(ctx context.Context, id ID, owner Owner) error

	// Unknown ends the attempt of r.Owner, about whose effects nothing is known, and keeps
	// r.Reason for operators. The record stays in progress, but no owner holds it: its lease
	// ends now, its policy is AtMostOnce from now on, and it is valid for its Retention and
	// Horizon from now. An [Inspector] shows it in StateUnknown, and resolves it as one that
	// lapsed.
	//
	// It succeeds while r.Owner holds the record, and when r.Owner called it before: then
	// the reason of the first call stays. Otherwise it returns ErrLeaseLost and changes no
	// record.
	Unknown(ctx context.Context, r UnknownRequest) error
}

// ClaimRequest asks for ownership of an ID. See [Store.Claim].
type ClaimRequest struct {
	ID          ID
	Owner       Owner         // never zero
	Fingerprint Fingerprint   // of the content of the request; any value
	Policy                    // of the operation
	Description string        // of the request, for operators: up to MaxDescription bytes of printable ASCII, without the key; may be empty
	Scope       uint64        // lets a store divide its room among scopes: equal for equal scopes of one process, 0 if unknown; not an identity
	Lease       time.Duration // how long the attempt may run without renewal
	Takeover    bool          // whether a lapsed record of another owner may be claimed, if the record's policy allows it
	MaxAttempts int           // takeovers stop at this attempt number; 0 is unlimited

	// Waiting says that the caller waits for the attempt that it may find in progress: a
	// Waiter then signals when that attempt ends.
	Waiting bool
}

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every store
// calls it first.
func (r *ClaimRequest) Validate() error {
	if r.Owner.IsZero() {
		return fmt.Errorf("%w: ClaimRequest.Owner is zero", ErrInvalid)
	}
	if r.MaxAttempts < 0 {
		return fmt.Errorf("%w: ClaimRequest.MaxAttempts is %d, want 0 or more", ErrInvalid, r.MaxAttempts)
	}
	if err := bounds.Duration("ClaimRequest.Lease", r.Lease); err != nil {
		return err
	}
	if err := bounds.Text("ClaimRequest.Description", r.Description, MaxDescription); err != nil {
		return err
	}
	return r.Policy.Validate()
}

// Policy is what a record keeps of the policy of its operation, from its claim on. A
// record is judged by its own policy: neither a deployment nor a second guard with
// another policy changes what was promised to an operation that already runs or has
// ended.
type Policy struct {
	Label      string        // the name of the policy, for operators: up to MaxLabel bytes of printable ASCII, without data of a client
	AtMostOnce bool          // whether a lapsed record is never taken over
	Retention  time.Duration // how long the payload is replayed from the completion on
	Horizon    time.Duration // how much longer the record is kept, without its payload; 0, or in the range of durations as their sum is
}

// Validate reports the first field that is out of its range, as [ErrInvalid]. The
// requests that have a policy validate it.
func (p *Policy) Validate() error {
	if err := bounds.Text("Policy.Label", p.Label, MaxLabel); err != nil {
		return err
	}
	return bounds.Remembered("Policy", p.Retention, p.Horizon)
}

// Remembered returns how long a record is valid: from its completion on, and until then
// from its last claim on.
func (p *Policy) Remembered() time.Duration { return p.Retention + p.Horizon }

// ClaimResult is the definite result of a claim. Fields that do not belong to the outcome
// are zero.
type ClaimResult struct {
	Outcome Outcome

	// Attempt and Fence belong to Claimed. A resource that remembers the highest fence that
	// it saw can refuse a stale owner.
	Attempt int
	Fence   uint64

	// Remaining is the rest of the lease by the store's clock: for Claimed of the caller's
	// lease, zero or less if it has run out, and for InProgress of the other owner's.
	Remaining time.Duration

	// Payload belongs to Completed. It must not be modified: a store may return the same
	// bytes to every caller.
	Payload []byte
}

// RenewRequest asks for a longer lease. See [Store.Renew].
type RenewRequest struct {
	ID    ID
	Owner Owner
	Lease time.Duration
}

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every store
// calls it first.
func (r *RenewRequest) Validate() error {
	if r.Owner.IsZero() {
		return fmt.Errorf("%w: RenewRequest.Owner is zero", ErrInvalid)
	}
	return bounds.Duration("RenewRequest.Lease", r.Lease)
}

// RenewStatus is the result of one [RenewRequest].
type RenewStatus uint8

// The statuses of a renewal. The zero value is not one of them.
const (
	Renewed        RenewStatus = iota + 1 // the lease runs again from now
	RenewBusy                             // not known to be renewed, nor to have ended: another call is writing the record, or the renewal failed; ask again
	RenewCompleted                        // this owner completed the record
	RenewLost                             // this owner does not hold the record
)

// String returns the status as it appears in logs.
func (s RenewStatus) String() string { return text.Name(renewNames[:], int(s)) }

var renewNames = [...]string{Renewed: "renewed", RenewBusy: "busy", RenewCompleted: "completed", RenewLost: "lost"}

// CompleteRequest ends an attempt. See [Store.Complete].
type CompleteRequest struct {
	ID      ID
	Owner   Owner
	Payload []byte // kept byte for byte, also if it is empty; the caller may reuse it after the call
	Policy         // of the claim; its Retention and Horizon count from now

	// Fingerprint, Policy, Description, Attempt and Fence are those of the claim, so that a
	// store can write the whole record without reading it. Where the caller does not know
	// them, Attempt is 0, and the store reads the record and keeps its label and
	// description.
	Fingerprint Fingerprint
	Description string
	Attempt     int
	Fence       uint64
}

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every store
// calls it first.
func (r *CompleteRequest) Validate() error {
	if r.Owner.IsZero() {
		return fmt.Errorf("%w: CompleteRequest.Owner is zero", ErrInvalid)
	}
	if r.Attempt < 0 {
		return fmt.Errorf("%w: CompleteRequest.Attempt is %d, want 0 or more", ErrInvalid, r.Attempt)
	}
	if len(r.Payload) > MaxPayload {
		return fmt.Errorf("%w: CompleteRequest.Payload has %d bytes, want %d at most", ErrInvalid, len(r.Payload), MaxPayload)
	}
	if err := bounds.Text("CompleteRequest.Description", r.Description, MaxDescription); err != nil {
		return err
	}
	return r.Policy.Validate()
}

// UnknownRequest ends an attempt whose outcome is unknown. See [Store.Unknown].
type UnknownRequest struct {
	ID     ID
	Owner  Owner
	Reason string // why it is unknown, for operators: 1 to MaxReason bytes of printable ASCII
}

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every store
// calls it first.
func (r *UnknownRequest) Validate() error {
	if r.Owner.IsZero() {
		return fmt.Errorf("%w: UnknownRequest.Owner is zero", ErrInvalid)
	}
	if r.Reason == "" {
		return fmt.Errorf("%w: UnknownRequest.Reason is empty", ErrInvalid)
	}
	return bounds.Text("UnknownRequest.Reason", r.Reason, MaxReason)
}

// Outcome is the result of a claim, which decides how the operation goes on.
type Outcome uint8

// The outcomes of a claim. The zero value is not one of them.
const (
	Claimed    Outcome = iota + 1 // this caller is the owner: run it
	InProgress                    // another attempt is running
	Completed                     // the operation is completed: replay the payload
	Mismatch                      // the key belongs to another request
	Lapsed                        // the last attempt lapsed, and takeover was refused
	Expired                       // the operation is completed, and the retention of its payload has ended
)

// String returns the outcome as it appears in logs.
func (o Outcome) String() string { return text.Name(outcomeNames[:], int(o)) }

var outcomeNames = [...]string{
	Claimed: "claimed", InProgress: "in-progress", Completed: "completed", Mismatch: "mismatch", Lapsed: "lapsed",
	Expired: "expired",
}

// The range of every duration that crosses [Store]: 1 ms to 10 years of 365 days. Shorter
// ones are below the resolution of clocks, longer ones overflow dates.
const (
	MinDuration = bounds.MinDuration
	MaxDuration = bounds.MaxDuration
)

// MaxLabel is the maximum length of the label of a policy: 32 bytes.
const MaxLabel = bounds.MaxLabel

// MaxReason is the maximum length of the reason of an unknown outcome: 255 bytes.
const MaxReason = bounds.MaxReason

// MaxDescription is the maximum length of the description of a request: 255 bytes.
const MaxDescription = bounds.MaxDescription

// MaxPayload is the maximum size of a payload, which every [Store] must accept: 64 MiB.
const MaxPayload = 64 << 20

// ContextKey is where an adapter keeps the context of a run in a framework's own request
// context, such as *gin.Context, which finds values by strings only. Lookups in the
// context of a handler go on there, so that handlers may pass either context.
const ContextKey = "github.com/reprise-go/reprise"

// RunContext returns the context of the run that an adapter put under [ContextKey] into a
// framework's context, and false if there is none. A store whose [Transactor] puts
// values into a handler's context looks for them there after it found none in ctx itself.
func RunContext(ctx context.Context) (context.Context, bool) {
	run, ok := ctx.Value(ContextKey).(context.Context)
	return run, ok
}
