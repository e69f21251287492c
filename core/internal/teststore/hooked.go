// Package teststore has a store for the tests of this module.
package teststore

import (
	"context"
	"sync/atomic"

	"github.com/reprise-go/reprise/core/store"
)

// Hooked is a store whose operations a test replaces; those that it does not replace are
// forwarded. Hooks are set before the engine uses them, and last until Heal. It hides the
// abilities of the store inside.
type Hooked struct {
	store.Store
	healed     atomic.Bool
	OnClaim    func(context.Context, store.ClaimRequest) (store.ClaimResult, error)
	OnRenew    func(context.Context, []store.RenewRequest) ([]store.RenewStatus, error)
	OnComplete func(context.Context, store.CompleteRequest) error
	OnRelease  func(context.Context, store.ID, store.Owner) error
	OnUnknown  func(context.Context, store.UnknownRequest) error
}

// Heal forwards everything from now on.
func (h *Hooked) Heal() { h.healed.Store(true) }

// Claim implements [store.Store].
func (h *Hooked) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if h.OnClaim != nil && !h.healed.Load() {
		return h.OnClaim(ctx, r)
	}
	return h.Store.Claim(ctx, r)
}

// Renew implements [store.Store].
func (h *Hooked) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	if h.OnRenew != nil && !h.healed.Load() {
		return h.OnRenew(ctx, rs)
	}
	return h.Store.Renew(ctx, rs)
}

// Complete implements [store.Store].
func (h *Hooked) Complete(ctx context.Context, r store.CompleteRequest) error {
	if h.OnComplete != nil && !h.healed.Load() {
		return h.OnComplete(ctx, r)
	}
	return h.Store.Complete(ctx, r)
}

// Release implements [store.Store].
func (h *Hooked) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	if h.OnRelease != nil && !h.healed.Load() {
		return h.OnRelease(ctx, id, owner)
	}
	return h.Store.Release(ctx, id, owner)
}

// Unknown implements [store.Store].
func (h *Hooked) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if h.OnUnknown != nil && !h.healed.Load() {
		return h.OnUnknown(ctx, r)
	}
	return h.Store.Unknown(ctx, r)
}
