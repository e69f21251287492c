package memstore

import (
	"context"

	"github.com/reprise-go/reprise/core/store"
)

// Renew implements [store.Store]. An invalid entry refuses the whole batch before any
// of it is renewed.
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	for i := range rs {
		if err := rs[i].Validate(); err != nil {
			return nil, err
		}
	}
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	answers := make([]store.RenewStatus, len(rs))
	for i := range rs {
		answers[i] = s.renew(&rs[i])
	}
	return answers, nil
}

func (s *Store) renew(r *store.RenewRequest) store.RenewStatus {
	sh := s.shard(r.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	rec := sh.find(r.ID, now)
	switch {
	case rec == nil || rec.owner != r.Owner || rec.reason != "":
		return store.RenewLost
	case rec.completed:
		return store.RenewCompleted
	default:
		rec.lease = now + r.Lease
		sh.reschedule(rec)
		return store.Renewed
	}
}

// Complete implements [store.Store]. A full store does not refuse it: see [Bounds].
func (s *Store) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	payload := make([]byte, len(r.Payload)) // outside the lock: it may be many megabytes
	copy(payload, r.Payload)

	sh := s.shard(r.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	rec := sh.find(r.ID, now)
	switch {
	case rec == nil || rec.owner != r.Owner || rec.reason != "":
		return store.ErrLeaseLost
	case rec.completed:
		return nil // by an earlier call, whose payload stays
	default:
		rec.policy.Retention, rec.policy.Horizon = r.Retention, r.Horizon
		sh.complete(rec, payload, now, now+r.Retention, now+r.Remembered())
		return nil
	}
}

// complete ends the attempt on a record and keeps payload, which belongs to the record
// from then on, until the instant replayed, and the record until valid.
func (sh *shard) complete(rec *record, payload []byte, now, replayed, valid instant) {
	sh.usage.addPayload(rec.scope, len(payload)-len(rec.reason))
	rec.completed, rec.reason, rec.payload, rec.lease, rec.replayed, rec.valid = true, "", payload, now, replayed, valid
	sh.reschedule(rec)
	sh.changed(rec.id)
}

// Release implements [store.Store].
func (s *Store) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	sh := s.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if rec := sh.find(id, s.now()); rec != nil && rec.owner == owner && !rec.completed && rec.reason == "" {
		sh.forget(rec)
	}
	return nil
}

// Unknown implements [store.Store].
func (s *Store) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	sh := s.shard(r.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	rec := sh.find(r.ID, now)
	switch {
	case rec == nil || rec.completed || rec.owner != r.Owner:
		return store.ErrLeaseLost
	case rec.reason == "":
		rec.reason, rec.lease, rec.policy.AtMostOnce = r.Reason, now, true
		rec.valid = now + rec.policy.Remembered()
		sh.usage.addPayload(rec.scope, len(rec.reason))
		sh.reschedule(rec)
		sh.changed(rec.id)
	}
	return nil
}

// forget deletes a record and wakes its watchers.
func (sh *shard) forget(rec *record) {
	sh.remove(rec)
	sh.changed(rec.id)
}
