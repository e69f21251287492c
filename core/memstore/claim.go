package memstore

import (
	"context"
	"fmt"

	reprise "github.com/reprise-go/reprise/core"
)

// Claim implements [reprise.Store]. It fails with [reprise.ErrFull] when the key is new and a bound is reached.
func (s *Store) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return reprise.ClaimResult{}, err
	}
	if err := enter(ctx); err != nil {
		return reprise.ClaimResult{}, err
	}
	if answer, ok := s.claim(&r); ok {
		return answer, nil
	}
	// Full, as far as the shard of this ID can tell. Others may hold what is dead; no lock is held while they look.
	for i := range s.shards {
		s.sweep(&s.shards[i], sweepPerClaim)
	}
	if answer, ok := s.claim(&r); ok {
		return answer, nil
	}
	return reprise.ClaimResult{}, fmt.Errorf("%w: memstore holds %d records in %d bytes",
		reprise.ErrFull, s.room.records.Load(), s.room.bytes.Load())
}

// claim takes the decision under the lock of the ID's shard.
func (s *Store) claim(r *reprise.ClaimRequest) (answer reprise.ClaimResult, ok bool) {
	sh := s.shard(r.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.claim(r, s.now())
}

// claim decides in the order that [reprise.Store] gives. It is not ok when the record is new and there is no room.
func (sh *shard) claim(r *reprise.ClaimRequest, now instant) (answer reprise.ClaimResult, ok bool) {
	rec := sh.find(r.ID, now)
	switch {
	case rec == nil:
		if !sh.makeRoom(now) {
			return reprise.ClaimResult{}, false
		}
		rec = &record{id: r.ID, fingerprint: r.Fingerprint}
		sh.attempt(rec, r, now)
		sh.add(rec)
		return claimed(rec, now), true
	case rec.fingerprint != r.Fingerprint:
		return reprise.ClaimResult{Outcome: reprise.Mismatch}, true
	case rec.completed:
		return reprise.ClaimResult{Outcome: reprise.Completed, Payload: rec.payload}, true
	case rec.live(now) && rec.owner == r.Owner:
		rec.grant(r, now)
		sh.moved(rec)
		return claimed(rec, now), true
	case rec.live(now):
		return reprise.ClaimResult{Outcome: reprise.InProgress, Remaining: rec.lease - now}, true
	case rec.owner == r.Owner:
		return claimed(rec, now), true // lapsed, and nobody took over: the engine renews it before it runs
	case !r.Takeover, r.MaxAttempts > 0 && rec.attempt >= r.MaxAttempts:
		return reprise.ClaimResult{Outcome: reprise.Lapsed}, true
	default:
		sh.attempt(rec, r, now)
		sh.moved(rec)
		return claimed(rec, now), true
	}
}

// attempt makes the caller the owner of a record, for the next attempt.
func (sh *shard) attempt(rec *record, r *reprise.ClaimRequest, now instant) {
	sh.fence++
	rec.owner, rec.fence = r.Owner, sh.fence
	rec.attempt++
	rec.grant(r, now)
}

// grant starts the lease and the validity of a record from now.
func (r *record) grant(req *reprise.ClaimRequest, now instant) {
	r.lease, r.valid = now+req.Lease, now+req.Retention
}

func claimed(rec *record, now instant) reprise.ClaimResult {
	return reprise.ClaimResult{
		Outcome:   reprise.Claimed,
		Attempt:   rec.attempt,
		Fence:     rec.fence,
		Remaining: rec.lease - now,
	}
}
