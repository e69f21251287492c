package reprise

import (
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/internal/bounds"
	"github.com/reprise-go/reprise/core/store"
)

// Operation names an operation that runs once. Scope, Key and Endpoint make its
// [store.ID]. These three strings are not kept after Begin returned, so they may be views
// into buffers that are used again.
type Operation struct {
	// Scope is the authenticated principal that the key belongs to. Equal keys of
	// different scopes are different operations. It is never empty: callers that share
	// one key space between principals choose a name for it.
	Scope string

	// Key is the key from the client, decoded, or the ID of a message; without one, a digest
	// of its content, with the window in which equal messages are one as the Retention.
	// Never empty. Its length and its bytes are free: stores get a digest.
	Key string

	// Endpoint distinguishes operations where clients use one key for several. It is
	// usually empty.
	Endpoint string

	// Fingerprint is the digest of the request's content. The same key with another
	// fingerprint is a [Mismatch].
	Fingerprint store.Fingerprint

	// Preset decides how failures and lapsed attempts are treated. Like Retention and
	// Horizon it is kept in the record from its claim on: a record is judged by the policy
	// that claimed it.
	Preset Preset

	// Retention is how long a result is replayed, counted from its completion by the
	// store's clock: 1 ms to 10 years. Zero is the engine's default. With AtMostOnce choose
	// it, together with the Horizon, longer than Config.MaxRun and Lease, which Begin does
	// not check: an attempt that never completed is remembered from its claim for as long.
	Retention time.Duration

	// Horizon is for operations that must not run again after their retention either: how
	// much longer they are remembered. When the retention of a completed record has ended,
	// the store deletes the result, and Begin returns [Expired] until the horizon has ended
	// too; then the key is new. An attempt that never completed is remembered as long.
	// Together they are 10 years at most. Zero ends the memory with the retention;
	// otherwise at least 1 ms.
	Horizon time.Duration

	// MaxAttempts is the attempt number from which on a lapsed record is not taken over
	// any more. Released attempts do not count. Zero is unlimited.
	MaxAttempts int

	// FailOpen runs the operation without a claim when its claim, with all its repeats,
	// could not reach the server (ErrUnavailable or ErrUnknown), and this process knows
	// nothing of the key: see [Attempt.Unprotected]. Then only this process excludes
	// duplicates, and the operation may run twice. Begin returns InProgress instead beside
	// an attempt of this process that has not ended, a completion or release in the
	// background, and an attempt that the call saw in progress before. An exhausted pool or
	// queue (ErrBusy) is no reason to run, and neither is a store that panics or breaks its
	// contract: it was reached. FailOpen cannot be combined with AtMostOnce, a Horizon or
	// Transactional.
	FailOpen bool

	// Transactional lets the handler write in a transaction of the store, which commits with
	// the result or not at all: the package of the store says how a handler gets it. It
	// begins when the handler asks for it, so that a handler which does not costs no
	// connection. If the lease is lost, the effects are rolled back. The store must be a
	// [store.Transactor].
	Transactional bool

	// Label names the policy in events and, for operators, in the record: at most
	// [store.MaxLabel] bytes of printable ASCII. It must not contain data of a client.
	// [Engine.Declare] makes its metrics begin at zero.
	Label string

	// Description tells operators about the request, in its record: its route, its tenant,
	// its trace. It has up to [store.MaxDescription] bytes: a longer one is cut and ends in
	// "...". Each character that is not printable ASCII becomes a "?". Begin copies it. It
	// must not contain the key, nor anything else that is not for operators.
	Description string

	// Reads says that the caller reads the payload of a Replayed result before it counts as
	// one, and then says by [Result.Read] whether it could. Without it Begin counts.
	Reads bool

	// Wait is how long Begin may wait for another attempt to end before it answers
	// InProgress. Zero does not wait.
	Wait time.Duration
}

// Preset decides how both failures and lapsed attempts are treated.
type Preset uint8

const (
	// Recoverable lets the next request run again after a failure, and take over a lapsed
	// record. Handlers see the attempt number. It suits handlers that may run again, and
	// those that pass derived keys downstream (see [AttemptView.Key]).
	Recoverable Preset = iota

	// AtMostOnce keeps failures and replays them, and refuses a lapsed record until an
	// operator resolves it or its retention ends.
	AtMostOnce
)

// String returns the preset as it appears in logs.
func (p Preset) String() string {
	if p == AtMostOnce {
		return "at-most-once"
	}
	return "recoverable"
}

// validate checks every field but Key, which Begin checks last.
func (op *Operation) validate() error {
	switch {
	case op.Scope == "":
		return fmt.Errorf("%w: Operation.Scope is empty", store.ErrInvalid)
	case op.Preset > AtMostOnce:
		return fmt.Errorf("%w: Operation.Preset is %d, which is not a preset", store.ErrInvalid, op.Preset)
	case op.MaxAttempts < 0:
		return fmt.Errorf("%w: Operation.MaxAttempts is %d, want 0 or more", store.ErrInvalid, op.MaxAttempts)
	case op.FailOpen && op.Preset == AtMostOnce:
		return fmt.Errorf("%w: Operation.FailOpen cannot be combined with AtMostOnce, which it would break", store.ErrInvalid)
	case op.FailOpen && op.Horizon != 0:
		return fmt.Errorf("%w: Operation.FailOpen cannot be combined with Horizon, whose operations must never run again", store.ErrInvalid)
	case op.FailOpen && op.Transactional:
		return fmt.Errorf("%w: Operation.FailOpen cannot be combined with Transactional, whose effects commit with the claim", store.ErrInvalid)
	case op.Label == store.ProbeLabel:
		return fmt.Errorf("%w: Operation.Label is %q, whose records no listing shows", store.ErrInvalid, op.Label)
	case op.Wait < 0:
		return fmt.Errorf("%w: Operation.Wait is %v, want 0 or more", store.ErrInvalid, op.Wait)
	}
	if err := bounds.Label("Operation.Label", op.Label); err != nil {
		return err
	}
	return bounds.Remembered("Operation", op.Retention, op.Horizon)
}
