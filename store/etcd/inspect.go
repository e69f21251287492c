package repriseetcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/core/store"
)

// Inspect implements [store.Inspector]. The instants in a record come from the clocks of
// the processes that wrote it, because an etcd server shows no clock.
func (s *Store) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	if err := s.ready(ctx); err != nil {
		return store.Record{}, err
	}
	now, err := s.inspect(ctx, id)
	if err != nil {
		return store.Record{}, err
	}
	if !now.exists {
		return store.Record{}, store.ErrNotFound
	}
	view, err := s.view(ctx, id, &now, map[clientv3.LeaseID]time.Duration{})
	if err != nil || view.State != store.StateCompleted {
		return view, err
	}
	view.Payload, err = s.join(ctx, id, &now)
	return view, err
}

// view returns a record without its payload, as operators see it. It keeps in ends how
// long the leases last that it asked for, for the next record.
func (s *Store) view(ctx context.Context, id store.ID, now *found, ends map[clientv3.LeaseID]time.Duration) (store.Record, error) {
	left := func(id clientv3.LeaseID) (time.Duration, error) {
		end, known := ends[id]
		if known || id == 0 {
			return end, nil
		}
		end, err := s.leases.left(ctx, id)
		ends[id] = end
		return end, err
	}
	if now.corrupt != nil {
		return store.Record{ID: id, State: store.StateUnreadable, Fence: uint64(now.revision)}, nil //nolint:gosec,nilerr // revisions are positive, and an unreadable record has a view
	}
	rec := &now.record
	view := store.Record{
		ID: id, Policy: rec.policy(), Fingerprint: rec.fingerprint, Description: rec.description, Attempt: rec.attempt, Fence: rec.fence,
		ClaimedAt: rec.claimedAt, CompletedAt: rec.completedAt, Reason: rec.reason, Size: rec.size,
	}
	var err error
	if view.Validity, err = left(now.lease); err != nil {
		return store.Record{}, err
	}
	view.Validity = max(view.Validity-rec.spare, time.Millisecond) // its key exists, so it is still valid
	switch {
	case rec.state == completed:
		view.State, view.Resolved = store.StateCompleted, rec.owner.IsZero()
		if !now.replayed {
			view.State, view.Size = store.StateExpired, 0
		}
	case now.live:
		view.State = store.StateRunning
		view.Lease, err = left(now.liveTill)
		view.Lease = max(view.Lease-now.spare, time.Millisecond) // its key exists, so it still runs
		view.Validity = max(view.Validity, view.Lease)
	case rec.state == unknown:
		view.State = store.StateUnknown
	default:
		view.State = store.StateLapsed
	}
	return view, err
}

// Resolve implements [store.Inspector]. A resolved record has no owner: its former owner
// gets ErrLeaseLost.
func (s *Store) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	if err := r.Validate(); err != nil {
		return err
	}
	payload := string(r.Payload)
	return s.update(ctx, id, nil, func(now *found) (done bool, err error) {
		switch {
		case !resolvable(now, &r):
			return true, store.ErrRecordChanged
		case r.Forget:
			return s.forget(ctx, id, now)
		}
		valid, err := s.leases.left(ctx, now.lease)
		if err != nil {
			return false, err
		}
		valid -= now.record.spare
		rec := now.record
		rec.state, rec.owner, rec.reason = completed, store.Owner{}, ""
		return s.keep(ctx, id, now, &rec, payload, r.Retention, max(valid, r.Retention+rec.horizon))
	})
}

// resolvable reports whether a record is still the one that an operator saw.
func resolvable(now *found, r *store.Resolution) bool {
	switch {
	case !now.exists:
		return false
	case now.corrupt != nil:
		return r.State == store.StateUnreadable && r.Fence == uint64(now.revision) //nolint:gosec // revisions are positive
	case now.live, now.record.fence != r.Fence, r.State == store.StateUnreadable:
		return false
	case r.State == store.StateLapsed && now.record.state == unknown:
		return false
	default:
		return r.State.WasCompleted() == (now.record.state == completed)
	}
}
