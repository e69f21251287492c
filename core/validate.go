package reprise

import (
	"fmt"
	"time"
)

// The range of every duration that crosses [Store]. Shorter ones are below the resolution
// of clocks, longer ones overflow dates.
const (
	MinDuration = time.Millisecond
	MaxDuration = 10 * 365 * 24 * time.Hour
)

// MaxPayload is the size of the largest payload that a [Store] must accept, in bytes.
const MaxPayload = 64 << 20

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every store
// calls it first.
func (r *ClaimRequest) Validate() error {
	if r.Owner.IsZero() {
		return fmt.Errorf("%w: ClaimRequest.Owner is zero", ErrInvalid)
	}
	if r.MaxAttempts < 0 {
		return fmt.Errorf("%w: ClaimRequest.MaxAttempts is %d, want 0 or more", ErrInvalid, r.MaxAttempts)
	}
	if err := checkDuration("ClaimRequest.Lease", r.Lease); err != nil {
		return err
	}
	return checkDuration("ClaimRequest.Retention", r.Retention)
}

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every store
// calls it first.
func (r *RenewRequest) Validate() error {
	if r.Owner.IsZero() {
		return fmt.Errorf("%w: RenewRequest.Owner is zero", ErrInvalid)
	}
	return checkDuration("RenewRequest.Lease", r.Lease)
}

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every store
// calls it first.
func (r *CompleteRequest) Validate() error {
	if r.Owner.IsZero() {
		return fmt.Errorf("%w: CompleteRequest.Owner is zero", ErrInvalid)
	}
	if len(r.Payload) > MaxPayload {
		return fmt.Errorf("%w: CompleteRequest.Payload has %d bytes, want %d at most", ErrInvalid, len(r.Payload), MaxPayload)
	}
	return checkDuration("CompleteRequest.Retention", r.Retention)
}

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every
// inspector calls it first.
func (r *Resolution) Validate() error {
	if r.Forget {
		return nil
	}
	if len(r.Payload) > MaxPayload {
		return fmt.Errorf("%w: Resolution.Payload has %d bytes, want %d at most", ErrInvalid, len(r.Payload), MaxPayload)
	}
	return checkDuration("Resolution.Retention", r.Retention)
}

func checkDuration(field string, d time.Duration) error {
	if d < MinDuration || d > MaxDuration {
		return fmt.Errorf("%w: %s is %v, want %v to %v", ErrInvalid, field, d, MinDuration, MaxDuration)
	}
	return nil
}
