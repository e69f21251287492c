package store

import (
	"fmt"

	"github.com/reprise-go/reprise/core/internal/bounds"
)

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
	if err := bounds.Text("Policy.Label", p.Label, MaxLabel); err != nil {
		return err
	}
	return bounds.Remembered("Policy", p.Retention, p.Horizon)
}
