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

// MaxLabel is the length of the longest label of a policy, in bytes.
const MaxLabel = 32

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
	if err := checkLabel("ClaimRequest.Label", r.Label); err != nil {
		return err
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
	if r.Attempt < 0 {
		return fmt.Errorf("%w: CompleteRequest.Attempt is %d, want 0 or more", ErrInvalid, r.Attempt)
	}
	if err := checkLabel("CompleteRequest.Label", r.Label); err != nil {
		return err
	}
	if len(r.Payload) > MaxPayload {
		return fmt.Errorf("%w: CompleteRequest.Payload has %d bytes, want %d at most", ErrInvalid, len(r.Payload), MaxPayload)
	}
	return checkDuration("CompleteRequest.Retention", r.Retention)
}

// checkLabel refuses what is not 0 to MaxLabel bytes of printable ASCII.
func checkLabel(field, label string) error {
	if len(label) > MaxLabel {
		return fmt.Errorf("%w: %s has %d bytes, want %d at most", ErrInvalid, field, len(label), MaxLabel)
	}
	for i := range len(label) {
		if label[i] < ' ' || label[i] > '~' {
			return fmt.Errorf("%w: %s has the byte %#x, want printable ASCII", ErrInvalid, field, label[i])
		}
	}
	return nil
}

func checkDuration(field string, d time.Duration) error {
	if d < MinDuration || d > MaxDuration {
		return fmt.Errorf("%w: %s is %v, want %v to %v", ErrInvalid, field, d, MinDuration, MaxDuration)
	}
	return nil
}
