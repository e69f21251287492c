package memstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// maxPurge is the largest limit that [store.Purger] documents.
const maxPurge = 100_000

// Inspect implements [store.Inspector].
func (s *Store) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	if err := checkContext(ctx); err != nil {
		return store.Record{}, err
	}
	sh := s.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	rec := sh.find(id, now)
	if rec == nil {
		return store.Record{}, store.ErrNotFound
	}
	view := rec.view(now, s.epoch)
	view.Payload = rec.payload
	return view, nil
}

// Resolve implements [store.Inspector]. A resolved record has no owner: its former owner
// gets ErrLeaseLost.
func (s *Store) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	payload := slices.Clone(r.Payload)
	sh := s.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	rec := sh.find(id, now)
	if rec == nil || rec.live(now) || rec.fence != r.Fence || rec.completed != r.State.WasCompleted() || r.State == store.StateUnreadable ||
		r.State == store.StateLapsed && rec.reason != "" {
		return store.ErrRecordChanged
	}
	if r.Forget {
		sh.forget(rec)
		return nil
	}
	rec.owner = store.Owner{}
	replayed := now + r.Retention
	sh.complete(rec, payload, now, replayed, max(rec.valid, replayed+rec.policy.Horizon))
	return nil
}

// Purge implements [store.Purger]. Claims of new keys delete what has ended anyway; Purge
// is for a store that should give its memory back while none arrive.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	if err := checkPurge(ctx, limit); err != nil {
		return 0, err
	}
	purged := 0
	for i := range s.shards {
		if purged += s.sweep(&s.shards[i], limit-purged); purged == limit {
			break
		}
	}
	return purged, nil
}

func checkPurge(ctx context.Context, limit int) error {
	if limit < 1 || limit > maxPurge {
		return fmt.Errorf("%w: the limit is %d, want 1 to %d", store.ErrInvalid, limit, maxPurge)
	}
	return checkContext(ctx)
}

// sweep is the sweep of a shard, with its lock.
func (s *Store) sweep(sh *shard, limit int) int {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.sweep(s.now(), limit)
}

// view shows a record without its payload. The store's clock started at epoch.
func (r *record) view(now instant, epoch time.Time) store.Record {
	v := store.Record{
		ID:          r.id,
		State:       store.StateLapsed,
		Policy:      r.policy,
		Fingerprint: r.fingerprint,
		Description: r.description,
		Attempt:     r.attempt,
		Fence:       r.fence,
		ClaimedAt:   epoch.Add(r.claimed),
		Validity:    r.end() - now,
		Size:        len(r.payload),
	}
	switch {
	case r.completed && now >= r.replayed:
		v.Size = 0
		v.State, v.CompletedAt, v.Resolved = store.StateExpired, epoch.Add(r.lease), r.owner.IsZero()
	case r.completed:
		v.State, v.CompletedAt, v.Resolved = store.StateCompleted, epoch.Add(r.lease), r.owner.IsZero()
	case r.live(now):
		v.State, v.Lease = store.StateRunning, r.lease-now
	case r.reason != "":
		v.State, v.Lease, v.Reason = store.StateUnknown, r.lease-now, r.reason
	default:
		v.Lease = r.lease - now
	}
	return v
}
