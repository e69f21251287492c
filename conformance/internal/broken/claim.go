package broken

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

var errNoRows = errors.New("no rows in result set")

// Claim implements [reprise.Store].
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	s.cut(&r.Description)
	if err := r.Validate(); err != nil && !s.has(claimInvalidAccepted) {
		return store.ClaimResult{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.ClaimResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	rec, err := s.find(r.ID, now)
	if err != nil {
		return store.ClaimResult{}, err
	}
	if rec == nil {
		return s.claimNew(&r, now), nil
	}
	return s.claimSeen(rec, &r, now), nil
}

func (s *Store) claimNew(r *store.ClaimRequest, now time.Time) store.ClaimResult {
	s.linger(claimNotAtomic)
	old := s.records[s.place(r.ID)]
	if old != nil {
		s.expired[old.owner] = true
		if s.has(unseenHasItsOwner) && old.owner == r.Owner {
			return claimed(old, now)
		}
		if s.has(fenceRestartsWithRecord) {
			s.fence = 0
		}
	}
	rec := &record{fingerprint: r.Fingerprint, scope: r.Scope, attempt: s.counted[r.ID]}
	if s.has(attemptsFromZero) {
		rec.attempt--
	}
	if old != nil && s.has(descriptionOutlives) {
		rec.description = old.description
	}
	s.records[s.place(r.ID)] = rec
	s.attempt(rec, r, now)
	return claimed(rec, now)
}

func (s *Store) claimSeen(rec *record, r *store.ClaimRequest, now time.Time) store.ClaimResult {
	live, own := s.live(rec, now), s.owns(rec, r.Owner)
	refused := !r.Takeover && !s.has(takeoverUnasked)
	switch {
	case s.has(presetOfRetry):
		refused = refused || r.AtMostOnce
	case !s.has(presetForgotten):
		refused = refused || rec.policy.AtMostOnce
	}
	usedUp := r.MaxAttempts > 0 && rec.attempt >= r.MaxAttempts
	if s.has(takeoverOnceTooOften) {
		usedUp = r.MaxAttempts > 0 && rec.attempt > r.MaxAttempts
	}
	switch {
	case s.has(unknownBeforePrint) && rec.reason != "":
		return store.ClaimResult{Outcome: store.Lapsed}
	case !s.matches(rec, r.Fingerprint, live), s.has(scopeIsIdentity) && rec.scope != r.Scope:
		return store.ClaimResult{Outcome: store.Mismatch}
	case rec.completed && own && s.has(ownerRunsAgain):
		return claimed(rec, now)
	case rec.completed && !(s.has(takeoverOfCompleted) && now.After(rec.granted)):
		if s.ended(rec, r, now) {
			return store.ClaimResult{Outcome: store.Expired}
		}
		return store.ClaimResult{Outcome: store.Completed, Payload: bytes.Clone(rec.payload)}
	case live && own && !s.has(claimNotRepeatable):
		if !s.has(repeatKeepsLease) {
			s.grant(rec, r, now)
		}
		return claimed(rec, now)
	case live:
		if s.has(refusedClaimExtends) {
			s.grant(rec, r, now)
		}
		if s.has(remainingOfCaller) {
			return store.ClaimResult{Outcome: store.InProgress, Remaining: r.Lease}
		}
		return store.ClaimResult{Outcome: store.InProgress, Remaining: rec.lease.Sub(now)}
	case rec.reason != "" && s.has(unknownOwnerClaims) && own:
		return claimed(rec, now)
	case s.isUnknown(rec, unknownTakenOver):
		return store.ClaimResult{Outcome: store.Lapsed}
	case own && !(s.has(lapsedOwnerRefused) && !r.Takeover):
		return claimed(rec, now)
	case refused || usedUp:
		return store.ClaimResult{Outcome: store.Lapsed}
	default:
		s.linger(takeoverNotAtomic)
		if s.has(takeoverOfGone) {
			fence := rec.fence
			s.linger(takeoverOfGone)
			now = s.now()
			switch current := s.records[s.place(r.ID)]; {
			case current == nil:
				s.records[s.place(r.ID)] = rec
				s.attempt(rec, r, now)
				rec.fence = fence + 1
				return claimed(rec, now)
			case current != rec || s.live(rec, now):
				return store.ClaimResult{Outcome: store.InProgress, Remaining: time.Millisecond}
			}
		}
		valid, fence := rec.valid, rec.fence
		rec.former = append(rec.former, rec.owner)
		s.attempt(rec, r, now)
		if s.has(takeoverKeepsValidity) {
			rec.valid = valid
		}
		if s.has(takeoverKeepsFence) {
			rec.fence = fence
		}
		return claimed(rec, now)
	}
}

// ended reports whether the retention of a payload has ended.
func (s *Store) ended(rec *record, r *store.ClaimRequest, now time.Time) bool {
	switch {
	case s.has(retentionOfRetry):
		return !now.Before(rec.completedAt.Add(r.Retention))
	case s.has(replayedOneInstantLonger):
		return now.After(rec.replayed)
	default:
		return !now.Before(rec.replayed)
	}
}

func (s *Store) matches(rec *record, f store.Fingerprint, live bool) bool {
	switch {
	case s.has(progressBeforeFingerprint) && live,
		s.has(completedBeforeFingerprint) && rec.completed,
		s.has(takeoverIgnoresFingerprint) && !rec.completed && !live:
		return true
	case s.has(fingerprintPrefix):
		return [16]byte(rec.fingerprint[:]) == [16]byte(f[:])
	default:
		return rec.fingerprint == f
	}
}

func (s *Store) owns(rec *record, owner store.Owner) bool {
	switch {
	case s.has(ownersPerConnection):
		return rec.owner == owner && rec.handle == s.handle
	case s.has(formerOwnerClaims):
		return rec.owner == owner || slices.Contains(rec.former, owner)
	default:
		return rec.owner == owner
	}
}

// attempt makes the caller the owner of a record, for the next attempt.
func (s *Store) attempt(rec *record, r *store.ClaimRequest, now time.Time) {
	s.fence++
	rec.owner, rec.handle, rec.fence = r.Owner, s.handle, s.fence
	if rec.attempt == 0 || !s.has(takeoverKeepsPolicy) {
		rec.policy = r.Policy
	}
	s.describe(rec, r)
	if rec.attempt == 0 || !s.has(takeoverKeepsTime) {
		rec.claimedAt = now
	}
	rec.completed, rec.payload, rec.reason = false, nil, ""
	rec.attempt++
	s.grant(rec, r, now)
}

func (s *Store) grant(rec *record, r *store.ClaimRequest, now time.Time) {
	rec.granted = now
	rec.lease, rec.valid = s.after(now, r.Lease), s.after(now, r.Remembered())
	if s.has(horizonAfterCompletion) {
		rec.valid = s.after(now, r.Retention)
	}
}

func claimed(rec *record, now time.Time) store.ClaimResult {
	return store.ClaimResult{Outcome: store.Claimed, Attempt: rec.attempt, Fence: rec.fence, Remaining: rec.lease.Sub(now)}
}
