package simulator

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/setting"
)

// under is the right store under one with a flaw, whose abilities it has.
type under struct{ store.Store }

// Unwrap returns the right store.
func (u under) Unwrap() store.Store { return u.Store }

// flawed is a store with a flaw in the methods that are not nil.
type flawed struct {
	under
	claim    func(s store.Store, r store.ClaimRequest) (store.ClaimResult, error)
	complete func(s store.Store, r store.CompleteRequest) error
	unknown  func(s store.Store, r store.UnknownRequest) error
	renewed  store.RenewStatus // the result of all renewals, which are forgotten
	keeps    bool              // what is released
}

func (f *flawed) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if f.claim == nil {
		return f.Store.Claim(ctx, r)
	}
	return f.claim(f.Store, r)
}

func (f *flawed) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	if f.renewed == 0 {
		return f.Store.Renew(ctx, rs)
	}
	return slices.Repeat([]store.RenewStatus{f.renewed}, len(rs)), nil
}

func (f *flawed) Complete(ctx context.Context, r store.CompleteRequest) error {
	if f.complete == nil {
		return f.Store.Complete(ctx, r)
	}
	return f.complete(f.Store, r)
}

func (f *flawed) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	if f.keeps {
		return nil
	}
	return f.Store.Release(ctx, id, owner)
}

func (f *flawed) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if f.unknown == nil {
		return f.Store.Unknown(ctx, r)
	}
	return f.unknown(f.Store, r)
}

var background = context.Background()

// claims is a flaw of a store that changes claims before it judges them.
func claims(change func(r *store.ClaimRequest)) flawed {
	return flawed{claim: func(s store.Store, r store.ClaimRequest) (store.ClaimResult, error) {
		change(&r)
		return s.Claim(background, r)
	}}
}

// takes is a flaw of a store that takes one outcome of a claim for another.
func takes(from, to store.Outcome) flawed {
	return flawed{claim: func(s store.Store, r store.ClaimRequest) (store.ClaimResult, error) {
		res, err := s.Claim(background, r)
		if res.Outcome == from {
			res.Outcome, res.Remaining = to, r.Lease
		}
		return res, err
	}}
}

// completes is a flaw of a store that changes completions before it keeps them.
func completes(change func(r *store.CompleteRequest)) flawed {
	return flawed{complete: func(s store.Store, r store.CompleteRequest) error {
		change(&r)
		return s.Complete(background, r)
	}}
}

var flaws = map[string]flawed{
	"leases end early":                   claims(func(r *store.ClaimRequest) { r.Lease /= 4 }),
	"leases end late":                    claims(func(r *store.ClaimRequest) { r.Lease += time.Hour }),
	"records forget AtMostOnce":          claims(func(r *store.ClaimRequest) { r.AtMostOnce = false }),
	"takeovers are not bounded":          claims(func(r *store.ClaimRequest) { r.MaxAttempts = 0 }),
	"other requests are not told apart":  claims(func(r *store.ClaimRequest) { r.Fingerprint = store.Fingerprint{} }),
	"attempts are forgotten too early":   claims(func(r *store.ClaimRequest) { r.Retention, r.Horizon = time.Millisecond, 0 }),
	"keys in progress are granted":       takes(store.InProgress, store.Claimed),
	"lapsed keys are granted":            takes(store.Lapsed, store.Claimed),
	"keys of other requests are granted": takes(store.Mismatch, store.Claimed),
	"completed keys are granted":         takes(store.Completed, store.Claimed),
	"completed keys are in progress":     takes(store.Completed, store.InProgress),
	"completed keys have lapsed":         takes(store.Completed, store.Lapsed),
	"new keys are in progress":           takes(store.Claimed, store.InProgress),
	"results are those of others":        completes(func(r *store.CompleteRequest) { r.Payload = append(slices.Clone(r.Payload), "more"...) }),
	"results end early":                  completes(func(r *store.CompleteRequest) { r.Retention /= 2 }),
	"results end late":                   completes(func(r *store.CompleteRequest) { r.Retention += time.Hour }),
	"results have no horizon":            completes(func(r *store.CompleteRequest) { r.Horizon = 0 }),
	"results are forgotten":              {complete: func(store.Store, store.CompleteRequest) error { return nil }},
	"results are released":               {complete: func(s store.Store, r store.CompleteRequest) error { return s.Release(background, r.ID, r.Owner) }},
	"unknown outcomes are released":      {unknown: func(s store.Store, r store.UnknownRequest) error { return s.Release(background, r.ID, r.Owner) }},
	"unknown outcomes lapse":             {unknown: func(store.Store, store.UnknownRequest) error { return nil }},
	"renewals are forgotten":             {renewed: store.Renewed},
	"renewals lose the lease":            {renewed: store.RenewLost},
	"releases are forgotten":             {keeps: true},
}

// TestSimulatorFindsEveryFlaw demands that each flaw of a store is found, and says by
// which seed.
//
//nolint:paralleltest // the simulations need the processor for themselves
func TestSimulatorFindsEveryFlaw(t *testing.T) {
	if setting.Race {
		t.Skip("the race detector finds no more of them, and makes the simulations slow")
	}
	const most = 2000
	for name, f := range flaws {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(most) {
				w := newDraw(seed).run(t, func(s store.Store) store.Store {
					broken := f
					broken.under = under{s}
					return &broken
				})
				if len(w.findings) > 0 {
					t.Logf("seed %d: %s", seed, w.findings[0])
					return
				}
			}
			t.Errorf("%d simulations found nothing", most)
		})
	}
}
