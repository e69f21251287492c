package memstore

import (
	"context"

	"github.com/reprise-go/reprise/core/store"
)

// Claim implements [store.Store]. It fails with [store.ErrFull] when the key is new
// and a bound is reached.
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return store.ClaimResult{}, err
	}
	if err := checkContext(ctx); err != nil {
		return store.ClaimResult{}, err
	}
	answer, err := s.claim(&r)
	if err == nil {
		return answer, nil
	}
	// The store is full as far as the shard of this ID knows. Others may hold dead
	// records; no lock is held while they are swept.
	for i := range s.shards {
		s.sweep(&s.shards[i], sweepPerClaim)
	}
	return s.claim(&r)
}

// claim takes the decision under the lock of the ID's shard.
func (s *Store) claim(r *store.ClaimRequest) (store.ClaimResult, error) {
	sh := s.shard(r.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.claim(r, s.now())
}

// claim decides in the order that [store.Store] gives. It fails when the record is new
// and the store is full.
func (sh *shard) claim(r *store.ClaimRequest, now instant) (store.ClaimResult, error) {
	rec := sh.find(r.ID, now)
	switch {
	case rec == nil:
		sh.sweep(now, sweepPerClaim)
		scope, err := sh.usage.add(r.Scope)
		if err != nil {
			return store.ClaimResult{}, err
		}
		rec = &record{id: r.ID, fingerprint: r.Fingerprint, scope: scope}
		sh.attempt(rec, r, now)
		sh.add(rec)
		return claimed(rec, now), nil
	case rec.fingerprint != r.Fingerprint:
		return store.ClaimResult{Outcome: store.Mismatch}, nil
	case rec.completed:
		return completed(rec), nil
	case rec.live(now) && rec.owner == r.Owner:
		sh.grant(rec, r, now)
		sh.reschedule(rec)
		return claimed(rec, now), nil
	case rec.live(now):
		return store.ClaimResult{Outcome: store.InProgress, Remaining: rec.lease - now}, nil
	case rec.reason != "":
		return store.ClaimResult{Outcome: store.Lapsed}, nil
	case rec.owner == r.Owner:
		return claimed(rec, now), nil // lapsed and not taken over: the engine renews it before it runs
	case rec.policy.AtMostOnce, !r.Takeover, r.MaxAttempts > 0 && rec.attempt >= r.MaxAttempts:
		return store.ClaimResult{Outcome: store.Lapsed}, nil
	default:
		sh.attempt(rec, r, now)
		sh.reschedule(rec)
		return claimed(rec, now), nil
	}
}

// attempt makes the caller the owner of a record, for the next attempt.
func (sh *shard) attempt(rec *record, r *store.ClaimRequest, now instant) {
	sh.fence++
	rec.owner, rec.fence, rec.claimed = r.Owner, sh.fence, now
	rec.attempt++
	sh.grant(rec, r, now)
}

// grant starts the lease and the validity of a record from now.
func (sh *shard) grant(rec *record, r *store.ClaimRequest, now instant) {
	if size := len(r.Description) - len(rec.description); size != 0 {
		sh.usage.addPayload(rec.scope, size)
	}
	rec.policy, rec.description, rec.lease, rec.valid = r.Policy, r.Description, now+r.Lease, now+r.Remembered()
}

func completed(rec *record) store.ClaimResult {
	if rec.expired {
		return store.ClaimResult{Outcome: store.Expired}
	}
	return store.ClaimResult{Outcome: store.Completed, Payload: rec.payload}
}

func claimed(rec *record, now instant) store.ClaimResult {
	return store.ClaimResult{
		Outcome:   store.Claimed,
		Attempt:   rec.attempt,
		Fence:     rec.fence,
		Remaining: rec.lease - now,
	}
}
