package reprise

import (
	"context"
	"time"
)

// Store keeps idempotency records: for each [ID] who owns it, until when, and how the operation ended.
//
// An implementation is linearizable per ID: every operation takes effect at one instant between its call and its
// answer, as if the operations on one ID ran one after the other. Different IDs never affect each other. All methods
// are safe for concurrent use, by any number of processes over one backing store.
//
// The store's clock decides, and only durations cross this interface. A deadline that equals the clock's reading has
// passed: at = expired. Durations are between [MinDuration] and [MaxDuration]; a request outside its documented ranges
// is refused with an error that wraps [ErrInvalid], before anything is read or written (see the Validate methods).
//
// # Records
//
// A record has a state (in progress or completed), an owner, a fingerprint, the end of its lease, an instant until
// which it is valid, an attempt number, a fence, and, once completed, a payload. A record is live while it is in
// progress and its lease runs. It counts ("is seen") while it is valid or live; a record that is neither is unseen to
// every operation, whether or not it was purged: a claim finds nothing, and its former owner can neither complete, renew
// nor release it.
//
// A lease is a field of the record, not the lifetime of the key: the record of a lapsed attempt stays visible.
//
// # Repetition
//
// A reply may be lost and the call repeated, by the engine or by a client library on its own. Repeating a call with
// the same [Owner] gives the answer of the first call, and writes again: newer servers acknowledge replication only for
// commands that propagated.
//
// # Errors
//
// Outcomes are values, errors are failures. A nil error is a definite answer. Every other error wraps exactly one of the
// sentinels of this package. An error that the implementation cannot place, such as a network error after the request may have
// left, is [ErrUnknown]; that includes a context that ended while the call was on its way. A record with an unknown
// version or state, a missing field or an undecodable form is [ErrCorrupt], found before any write: it is never executed as
// new, never served in part, and never reported as a raw driver error. No error contains a payload, an owner or anything that
// was not hashed.
//
// # Decorators
//
// A store that wraps another, to count, trace, delay or fail its calls, has a method
//
//	Unwrap() Store
//
// that returns the wrapped one, as [net/http.ResponseController] asks of a ResponseWriter. [As] then finds the
// abilities of the wrapped store, so a decorator spells out only those that it intercepts. By having Unwrap it says that it adds none: an
// ability that it implements counts only where the wrapped store has it too. A decorator without Unwrap hides
// every ability that it does not implement itself.
//
// # How to implement a Store
//
//  1. Choose the layout of a record, with a version in its first byte or column. Keep it in one place that one write
//     replaces as a whole, so that no failure leaves half of it.
//  2. Use the clock of the server that keeps the records, read at the instant of the decision, not at the start of a
//     transaction or of a wait.
//  3. Write Claim as one atomic step that decides in the order that its comment gives. Fingerprint before
//     progress; the caller's own claim before anybody's.
//  4. Write Complete and Release as compare-and-set on owner and state. Never create a record in them.
//  5. Write Renew for a batch. One stuck record must not keep the others from being renewed.
//  6. Map every failure of the driver to a sentinel. In doubt it is ErrUnknown.
//  7. Add the abilities that the server makes cheap: [Waiter], [Inspector], [Purger], [Checker].
//  8. Run the suite: storetest.Run, in the package github.com/reprise-go/reprise/conformance/storetest.
type Store interface {
	// Claim makes r.Owner the owner of r.ID, or says why not. It never waits for another owner. It decides, in this
	// order:
	//
	//	record not seen                                        → Claimed: attempt 1, a new fence
	//	fingerprint differs                                    → Mismatch
	//	completed                                              → Completed, with the payload; a replay writes nothing
	//	live and r.Owner's                                     → Claimed again: the lease starts anew, same attempt and fence
	//	live                                                   → InProgress, Remaining of the lease
	//	lapsed and r.Owner's, whatever Takeover says           → Claimed, Remaining ≤ 0: the engine renews before it runs
	//	lapsed, r.Takeover false or attempt ≥ r.MaxAttempts > 0 → Lapsed
	//	lapsed                                                 → Claimed (a takeover): attempt + 1, a higher fence
	//
	// A claim that is granted sets the lease to r.Lease from now and the validity to r.Retention from now; for the
	// caller's own lapsed record it may leave both as they are. Fences of one ID grow strictly while the store keeps its record, and do
	// not fall when it is claimed anew. A claim takes nothing from a record that is gone by the
	// time it writes.
	//
	// Claim fails with ErrFull when the store refuses to hold more, with ErrNotReplicated when the claim was written and too
	// few replicas confirmed it, and with the sentinels of the interface comment. After any error the engine repeats
	// the claim with the same owner or gives the claim up by Release.
	Claim(ctx context.Context, r ClaimRequest) (ClaimResult, error)

	// Renew extends the leases of a batch of attempts, each to its request's Lease from now; the answer has one status per
	// request, in order. A record is renewed while it is seen, in progress and its owner's, also when its lease has
	// lapsed and nobody took over. Validity does not change. Entries are independent of each other: only a failure that concerns the
	// whole batch is an error, and then any part of it may have been renewed. An empty batch is a no-op. A status is
	// not an error: RenewLost and RenewCompleted are answers.
	Renew(ctx context.Context, rs []RenewRequest) ([]RenewStatus, error)

	// Complete ends the attempt of r.Owner and keeps r.Payload, valid for r.Retention from now exactly. It succeeds while the
	// record is seen, in progress and r.Owner's, also when its lease has lapsed and nobody took over; and it succeeds again,
	// keeping the payload of the first call, when r.Owner completed it before. Otherwise it is ErrLeaseLost and nothing
	// was written. A completed record never changes its owner or payload.
	//
	// Where the claim was Atomic, Complete commits the effects of the handler together with the record.
	// r.DiscardEffects undoes the effects first and commits the record alone. ErrNotApplied says that everything was
	// rolled back; any other error leaves open whether it was committed.
	Complete(ctx context.Context, r CompleteRequest) error

	// Release forgets the claim of owner, so that the next claim finds nothing. It is nil also when there is nothing of
	// this owner to release: no record, a completed record, or another owner's. Where the claim was Atomic, the
	// effects of the handler are rolled back.
	Release(ctx context.Context, id ID, owner Owner) error
}

// ClaimRequest asks for ownership of an ID. See [Store.Claim].
type ClaimRequest struct {
	ID          ID
	Owner       Owner         // never zero
	Fingerprint Fingerprint   // what the request asks for; any value
	Scope       uint64        // for a store that shares its room out: equal for equal scopes of one process; 0 is unknown. No identity
	Lease       time.Duration // how long the attempt may run without renewal
	Retention   time.Duration // how long a record that is never completed stays valid
	Takeover    bool          // whether a lapsed record of another owner may be claimed
	MaxAttempts int           // takeovers stop at this attempt number; 0 is unlimited
}

// ClaimResult is the definite answer to a claim. Fields that the outcome does not name are zero.
type ClaimResult struct {
	Outcome Outcome

	// Attempt and Fence belong to Claimed. The attempt number starts at 1 and counts takeovers. The fence grows with every
	// attempt on an ID; a resource that remembers the highest fence it saw can refuse a stale owner.
	Attempt int
	Fence   uint64

	// Remaining is what is left of the lease by the store's clock: of the caller's for Claimed, where zero or less
	// means that it already lapsed, and of the other owner's for InProgress. For an Atomic claim it is the longest
	// that the store's transaction may last.
	Remaining time.Duration

	// Payload belongs to Completed. Nobody may modify it: a store may hand the same bytes to every caller.
	Payload []byte

	// Atomic says that the handler's effects and the completion commit together. Such an attempt has no lease, is never
	// renewed, and its response leaves only after Complete returned nil.
	Atomic bool
}

// RenewRequest asks for a longer lease. See [Store.Renew].
type RenewRequest struct {
	ID    ID
	Owner Owner
	Lease time.Duration
}

// RenewStatus is the answer to one [RenewRequest].
type RenewStatus uint8

// The answers to a renewal. The zero value is none of them.
const (
	Renewed        RenewStatus = iota + 1 // the lease runs again from now
	RenewBusy                             // the record is locked by its own completion; nothing changed, ask again
	RenewCompleted                        // this owner completed the record
	RenewLost                             // not this owner's any more
)

// CompleteRequest ends an attempt. See [Store.Complete].
type CompleteRequest struct {
	ID        ID
	Owner     Owner
	Payload   []byte        // kept as it is; empty is kept as empty. The caller may reuse it after the call
	Retention time.Duration // how long the record is replayed, from now

	// DiscardEffects keeps the answer and undoes the effects. It means something to Atomic claims only; other stores
	// ignore it.
	DiscardEffects bool
}

// Outcome is the answer to a claim: what to do with the operation.
type Outcome uint8

// The outcomes of a claim. The zero value is none of them.
const (
	Claimed    Outcome = iota + 1 // this caller is the owner: run it
	InProgress                    // another owner's lease runs
	Completed                     // it ran: replay the payload
	Mismatch                      // the key belongs to another request
	Lapsed                        // its last attempt did not end, and takeover was refused
)
