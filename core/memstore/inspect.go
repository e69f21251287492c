package memstore

import (
	"context"
	"fmt"
	"slices"

	reprise "github.com/reprise-go/reprise/core"
)

// The largest limits that [reprise.Inspector] and [reprise.Purger] document.
const (
	maxList  = 10_000
	maxPurge = 100_000
)

// Inspect implements [reprise.Inspector].
func (s *Store) Inspect(ctx context.Context, id reprise.ID) (reprise.Record, error) {
	if err := checkContext(ctx); err != nil {
		return reprise.Record{}, err
	}
	sh := s.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	rec := sh.find(id, now)
	if rec == nil {
		return reprise.Record{}, reprise.ErrNotFound
	}
	view := rec.view(now)
	view.Payload = rec.payload
	return view, nil
}

// List implements [reprise.Inspector].
func (s *Store) List(ctx context.Context, limit int) ([]reprise.Record, error) {
	if err := checkLimit(ctx, limit, maxList); err != nil {
		return nil, err
	}
	var list []reprise.Record
	for i := range s.shards {
		if list = s.appendViews(list, &s.shards[i], limit); len(list) == limit {
			break
		}
	}
	return list, nil
}

// appendViews appends the records of a shard that are seen, until the list has limit
// entries.
func (s *Store) appendViews(list []reprise.Record, sh *shard, limit int) []reprise.Record {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	for _, entry := range sh.order {
		if len(list) == limit {
			break
		}
		if now < entry.rec.end() {
			list = append(list, entry.rec.view(now))
		}
	}
	return list
}

// Resolve implements [reprise.Inspector]. A resolved record has no owner: what its former
// owner asks for is answered ErrLeaseLost.
func (s *Store) Resolve(ctx context.Context, id reprise.ID, r reprise.Resolution) error {
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
	if rec == nil || rec.completed || rec.live(now) || rec.fence != r.Fence {
		return reprise.ErrRecordChanged
	}
	if r.Forget {
		sh.forget(rec)
		return nil
	}
	rec.owner = reprise.Owner{}
	sh.complete(rec, payload, now+r.Retention)
	return nil
}

// Purge implements [reprise.Purger]. Claims delete what is past its retention on their
// own; Purge is for a store that should give its memory back while no new keys arrive.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	if err := checkLimit(ctx, limit, maxPurge); err != nil {
		return 0, err
	}
	deleted := 0
	for i := range s.shards {
		if deleted += s.sweep(&s.shards[i], limit-deleted); deleted == limit {
			break
		}
	}
	return deleted, nil
}

// sweep deletes up to limit dead records of a shard and returns how many it deleted.
func (s *Store) sweep(sh *shard, limit int) int {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.sweep(s.now(), limit)
}

// view shows a record without its payload.
func (r *record) view(now instant) reprise.Record {
	v := reprise.Record{
		ID:        r.id,
		Completed: r.completed,
		Attempt:   r.attempt,
		Fence:     r.fence,
		Validity:  r.end() - now,
	}
	if !r.completed {
		v.Lease = r.lease - now
	}
	return v
}

func checkLimit(ctx context.Context, limit, most int) error {
	if limit < 1 || limit > most {
		return fmt.Errorf("%w: the limit is %d, want 1 to %d", reprise.ErrInvalid, limit, most)
	}
	return checkContext(ctx)
}
