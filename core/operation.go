package reprise

import (
	"fmt"
	"time"
)

// Operation names what is to run once. Scope, Key and Endpoint make its [ID]. Nothing keeps these three
// strings after Begin returned, so they may be views into buffers that are used again.
type Operation struct {
	// Scope is the authenticated principal that the key belongs to. Equal keys of different scopes are different operations. Never
	// empty: sharing one key space is a choice to be spelled out.
	Scope string

	// Key is what the client sent, decoded. Never empty.
	Key string

	// Endpoint, where one key names several calls, tells them apart. Usually empty.
	Endpoint string

	// Fingerprint digests what the request asks for. The same key with another fingerprint is a [Mismatch].
	Fingerprint Fingerprint

	// Preset says what becomes of failures and of lapsed attempts.
	Preset Preset

	// Retention is how long a completed answer is replayed, from its completion, by the store's clock: from 1 ms to
	// 10 years. Zero is the engine's default.
	Retention time.Duration

	// MaxAttempts refuses takeovers of a lapsed record whose attempt number reached it. Released attempts do not count. Zero
	// is unlimited.
	MaxAttempts int

	// FailOpen runs the operation without a claim when the store cannot be reached (ErrUnavailable or
	// ErrUnknown): see [Attempt.Unprotected]. Then nothing but this process excludes duplicates, and
	// the operation may run twice. While the store is away, it is asked about once a second. It cannot
	// be combined with AtMostOnce.
	FailOpen bool

	// Label names the policy in events. It is kept as it is, and must hold nothing of a client.
	Label string

	// Wait is how long Begin may wait for another attempt to end before it answers InProgress. Zero does not wait.
	Wait time.Duration
}

// Preset is a coherent choice of what happens to failures and to attempts that did not end.
type Preset uint8

const (
	// Recoverable lets the next request run again after a failure, and take over a lapsed record. Handlers see the attempt
	// number. It suits handlers that may be repeated, or that pass derived keys downstream (see [AttemptView.Key]).
	Recoverable Preset = iota

	// AtMostOnce keeps failures and replays them, and refuses a lapsed record until an operator resolves it or its
	// retention ends.
	AtMostOnce
)

// String returns the preset as it appears in logs.
func (p Preset) String() string {
	if p == AtMostOnce {
		return "at-most-once"
	}
	return "recoverable"
}

func (op *Operation) validate() error {
	switch {
	case op.Scope == "":
		return fmt.Errorf("%w: Operation.Scope is empty", ErrInvalid)
	case op.Key == "":
		return fmt.Errorf("%w: Operation.Key is empty", ErrInvalid)
	case op.Preset > AtMostOnce:
		return fmt.Errorf("%w: Operation.Preset %d is not a preset", ErrInvalid, op.Preset)
	case op.MaxAttempts < 0:
		return fmt.Errorf("%w: Operation.MaxAttempts %d is negative", ErrInvalid, op.MaxAttempts)
	case op.FailOpen && op.Preset == AtMostOnce:
		return fmt.Errorf("%w: Operation.FailOpen cannot be combined with AtMostOnce, which it would break", ErrInvalid)
	case op.Wait < 0:
		return fmt.Errorf("%w: Operation.Wait %v is negative", ErrInvalid, op.Wait)
	}
	return checkDuration("Operation.Retention", op.Retention)
}
