package reprise

import (
	"fmt"
	"time"
)

// The range of every duration that crosses [Store]: below it clocks cannot be told apart, above it dates overflow.
const (
	MinDuration = time.Millisecond
	MaxDuration = 10 * 365 * 24 * time.Hour
)

// MaxPayload is the largest payload that a [Store] has to keep, in bytes.
const MaxPayload = 64 << 20

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every store calls it first.
func (r *ClaimRequest) Validate() error {
	if r.Owner.IsZero() {
		return fmt.Errorf("%w: claim without an owner", ErrInvalid)
	}
	if r.MaxAttempts < 0 {
		return fmt.Errorf("%w: MaxAttempts %d is negative", ErrInvalid, r.MaxAttempts)
	}
	if err := checkDuration("Lease", r.Lease); err != nil {
		return err
	}
	return checkDuration("Retention", r.Retention)
}

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every store calls it first.
func (r *RenewRequest) Validate() error {
	if r.Owner.IsZero() {
		return fmt.Errorf("%w: renewal without an owner", ErrInvalid)
	}
	return checkDuration("Lease", r.Lease)
}

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every store calls it first.
func (r *CompleteRequest) Validate() error {
	if r.Owner.IsZero() {
		return fmt.Errorf("%w: completion without an owner", ErrInvalid)
	}
	if len(r.Payload) > MaxPayload {
		return fmt.Errorf("%w: payload of %d bytes, at most %d", ErrInvalid, len(r.Payload), MaxPayload)
	}
	return checkDuration("Retention", r.Retention)
}

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every inspector calls it first.
func (r *Resolution) Validate() error {
	if r.Forget {
		return nil
	}
	if len(r.Payload) > MaxPayload {
		return fmt.Errorf("%w: payload of %d bytes, at most %d", ErrInvalid, len(r.Payload), MaxPayload)
	}
	return checkDuration("Retention", r.Retention)
}

func checkDuration(field string, d time.Duration) error {
	if d < MinDuration || d > MaxDuration {
		return fmt.Errorf("%w: %s is %v, want %v to %v", ErrInvalid, field, d, MinDuration, MaxDuration)
	}
	return nil
}
