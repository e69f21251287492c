package store

import (
	"fmt"

	"github.com/reprise-go/reprise/core/internal/bounds"
)

// The range of every duration that crosses [Store]. Shorter ones are below the resolution
// of clocks, longer ones overflow dates.
const (
	MinDuration = bounds.MinDuration
	MaxDuration = bounds.MaxDuration
)

// MaxLabel is the length of the longest label of a policy, in bytes.
const MaxLabel = bounds.MaxLabel

// MaxReason is the length of the longest reason of an unknown outcome, in bytes.
const MaxReason = bounds.MaxReason

// MaxDescription is the length of the longest description of a request, in bytes.
const MaxDescription = bounds.MaxDescription

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
	if err := bounds.Duration("ClaimRequest.Lease", r.Lease); err != nil {
		return err
	}
	if err := bounds.Text("ClaimRequest.Description", r.Description, MaxDescription); err != nil {
		return err
	}
	return r.Policy.Validate()
}

// Validate reports the first field that is out of its range, as [ErrInvalid]. Every store
// calls it first.
func (r *RenewRequest) Validate() error {
	if r.Owner.IsZero() {
		return fmt.Errorf("%w: RenewRequest.Owner is zero", ErrInvalid)
	}
	return bounds.Duration("RenewRequest.Lease", r.Lease)
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

// Validate reports the first field that is out of its range, as [ErrInvalid]. The
// requests that have a policy validate it.
func (p *Policy) Validate() error {
	if err := bounds.Label("Policy.Label", p.Label); err != nil {
		return err
	}
	return bounds.Remembered("Policy", p.Retention, p.Horizon)
}
