package broken

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// Complete implements [reprise.Store].
func (s *Store) Complete(ctx context.Context, r store.CompleteRequest) error {
	s.cut(&r.Description)
	if err := r.Validate(); err != nil && !s.has(completeInvalidAccepted) {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	rec, err := s.find(r.ID, now)
	if err != nil {
		return err
	}
	if rec == nil && s.has(completeUnseen) {
		rec = s.records[r.ID]
	}
	known := r.Attempt > 0
	switch {
	case known && s.has(knownNotFenced):
		rec.owner = r.Owner
	case known && s.has(knownWritten) && (rec == nil || !rec.completed):
		rec = &record{owner: r.Owner, attempt: r.Attempt, fence: r.Fence, fingerprint: r.Fingerprint, policy: r.Policy, claimedAt: now}
		s.records[s.place(r.ID)] = rec
	case rec == nil && s.has(completeResurrects):
		s.fence++
		rec = &record{owner: r.Owner, attempt: 1, fence: s.fence}
		s.records[s.place(r.ID)] = rec
	case rec == nil:
		return s.lost(r.Payload)
	case rec.completed && rec.owner == r.Owner:
		if s.has(completeNotRepeatable) {
			return s.lost(r.Payload)
		}
		if s.has(completedAtRepeated) {
			rec.completedAt = now
		}
		if !s.has(completeOverwrites) {
			return nil
		}
	case s.isUnknown(rec, unknownCompletes) && rec.owner == r.Owner:
		return s.lost(r.Payload)
	case s.has(completeUnfenced),
		s.has(completeStateOnly) && !rec.completed,
		s.has(completeByFormerOwner) && !rec.completed && slices.Contains(rec.former, r.Owner):
	case rec.completed || rec.owner != r.Owner:
		return s.lost(r.Payload)
	case s.has(completeLateRefused) && !s.live(rec, now):
		return s.lost(r.Payload)
	}
	s.linger(completeNotAtomic)
	if s.has(descriptionForgotten) {
		rec.description = ""
	}
	rec.policy.Retention, rec.policy.Horizon = r.Retention, r.Horizon
	s.complete(r.ID, rec, r.Payload, now, s.after(now, r.Retention), s.after(now, r.Remembered()))
	return nil
}

func (s *Store) complete(id store.ID, rec *record, payload []byte, now, replayed, valid time.Time) {
	rec.completedAt, rec.reason = now, ""
	rec.completed = !s.has(completeEmptyIsNothing) || len(payload) > 0
	rec.payload = s.kept(payload)
	rec.replayed = replayed
	switch {
	case s.has(horizonReplays):
		rec.replayed = valid
	case s.has(horizonForgotten):
		valid = replayed
	}
	switch {
	case s.has(retentionFromClaim):
	case s.has(retentionNeverShrinks) && valid.Before(rec.valid):
	default:
		rec.valid = valid
	}
	if !s.has(watchMissesCompletion) {
		s.changed(id)
	}
}

// kept returns a payload as the store keeps it.
func (s *Store) kept(payload []byte) []byte {
	switch {
	case s.has(payloadOfCaller):
		return payload
	case s.has(payloadShared):
		s.buffer = append(s.buffer[:0], payload...)
		return s.buffer
	case s.has(payloadEndsAtNUL):
		payload, _, _ = bytes.Cut(payload, []byte{0})
	case s.has(payloadTrimmed):
		payload = bytes.TrimSpace(payload)
	case s.has(payloadCut):
		payload = payload[:min(len(payload), 64<<10)]
	}
	return bytes.Clone(payload)
}

// Release implements [reprise.Store].
func (s *Store) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	rec, err := s.find(id, now)
	if err != nil {
		if s.has(corruptIsReleased) {
			s.remove(id)
		}
		return err
	}
	if rec == nil {
		if s.has(releaseNothingFails) {
			return s.lost(nil)
		}
		return nil
	}
	switch {
	case s.has(releaseUnfenced) && !rec.completed,
		s.has(releaseOfCompleted) && rec.owner == owner,
		s.has(releaseByFormerOwner) && slices.Contains(rec.former, owner),
		s.has(releaseUnseenTakesNext) && s.expired[owner]:
	case rec.completed || rec.owner != owner || s.isUnknown(rec, unknownReleases):
		return nil
	case s.has(releaseLapsedIgnored) && !s.live(rec, now):
		return nil
	}
	s.release(id, rec, now)
	return nil
}

func (s *Store) release(id store.ID, rec *record, now time.Time) {
	if s.has(releaseKeepsRecord) {
		rec.lease, rec.owner = now, store.Owner{}
		return
	}
	if s.has(releaseKeepsAttempts) {
		s.counted[id] = rec.attempt
	}
	s.remove(id)
	if !s.has(watchMissesRelease) {
		s.changed(id)
	}
}

// Renew implements [reprise.Store].
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	if len(rs) == 0 && s.has(renewEmptyRefused) {
		return nil, fmt.Errorf("%w: nothing to renew", store.ErrInvalid)
	}
	for i := range rs {
		if err := rs[i].Validate(); err != nil && !s.has(renewInvalidAccepted) {
			return nil, err
		}
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	answers := make([]store.RenewStatus, len(rs))
	lost := false
	for i := range rs {
		answers[i] = store.RenewLost
		if s.has(renewCapped) && i >= 100 || s.has(renewStopsAtLost) && lost {
			continue
		}
		answers[i] = s.renew(&rs[i], now)
		lost = lost || answers[i] == store.RenewLost
	}
	return answers, nil
}

func (s *Store) renew(r *store.RenewRequest, now time.Time) store.RenewStatus {
	rec, err := s.find(r.ID, now)
	if rec == nil && s.has(renewUnseen) {
		rec = s.records[r.ID]
	}
	lease := s.after(now, r.Lease)
	switch {
	case err != nil:
		return store.RenewLost
	case rec == nil && s.has(renewCreates):
		s.fence++
		rec = &record{owner: r.Owner, attempt: 1, fence: s.fence}
		s.records[s.place(r.ID)] = rec
	case rec == nil:
		return store.RenewLost
	case rec.completed && rec.owner == r.Owner && !s.has(renewForgetsCompletion):
		return store.RenewCompleted
	case rec.completed:
		return store.RenewLost
	case s.has(renewByAnyone),
		s.has(renewByFormerOwner) && slices.Contains(rec.former, r.Owner):
	case rec.owner != r.Owner || s.isUnknown(rec, unknownRenewed):
		return store.RenewLost
	case s.has(renewLapsedRefused) && !s.live(rec, now):
		return store.RenewLost
	}
	switch {
	case s.has(renewNothing):
		return store.Renewed
	case s.has(renewOnlyLengthens) && lease.Before(rec.lease):
		return store.Renewed
	case s.has(renewWithinValidity) && rec.valid.Before(lease):
		lease = rec.valid
	case s.has(renewExtendsValidity):
		rec.valid = lease.Add(r.Lease)
	}
	if s.has(renewMovesTime) {
		rec.claimedAt = now
	}
	rec.granted, rec.lease = now, lease
	return store.Renewed
}
