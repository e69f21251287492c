package repriseetcd

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/parallel"
)

// Renew implements [store.Store], with one transaction for each entry. An entry that
// failed while others succeeded answers [store.RenewBusy].
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	for i := range rs {
		if err := rs[i].Validate(); err != nil {
			return nil, err
		}
	}
	statuses := make([]store.RenewStatus, len(rs))
	errs := make([]error, len(rs))
	each(len(rs), func(i int) { statuses[i], errs[i] = s.renew(ctx, &rs[i]) })
	failed := 0
	for i, err := range errs {
		if err != nil {
			statuses[i] = store.RenewBusy
			failed++
		}
	}
	if failed > 0 && failed == len(rs) {
		return nil, errs[0]
	}
	return statuses, nil
}

func (s *Store) renew(ctx context.Context, r *store.RenewRequest) (status store.RenewStatus, err error) {
	err = s.update(ctx, r.ID, nil, func(now *found) (done bool, err error) {
		rec := now.record
		switch {
		case now.corrupt != nil, !now.exists, rec.owner != r.Owner, rec.state == unknown:
			status = store.RenewLost
			return true, nil //nolint:nilerr // an unreadable record belongs to no attempt of this release
		case rec.state == completed:
			status = store.RenewCompleted
			return true, nil
		}
		left, err := s.leases.left(ctx, now.lease)
		if err != nil {
			return false, err
		}
		status = store.Renewed
		valid := left - rec.spare
		periods := together(r.Lease, valid)
		if periods[0] != periods[1] { // the record already outlasts the lease
			return s.write(ctx, r.ID, now, periods[:1], func(ls []*lease) []clientv3.Op {
				return []clientv3.Op{s.putLive(r.ID, r.Lease, ls[0])}
			})
		}
		return s.write(ctx, r.ID, now, periods, func(ls []*lease) []clientv3.Op {
			rec.spare = ls[1].spare(valid)
			return s.running(r.ID, r.Lease, &rec, ls)
		})
	})
	return status, err
}

// Complete implements [store.Store]. It is one transaction of etcd, unless the payload is
// larger than 512 KiB: then its parts are written first.
func (s *Store) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	payload := string(r.Payload)
	return s.update(ctx, r.ID, s.remembered(&r), func(now *found) (done bool, err error) {
		rec := now.record
		switch {
		case now.corrupt != nil:
			return true, now.corrupt
		case !now.exists, rec.owner != r.Owner, rec.state == unknown:
			return true, store.ErrLeaseLost
		case rec.state == completed:
			return true, nil // by an earlier call, whose payload stays
		}
		rec.state, rec.retention, rec.horizon = completed, r.Retention, r.Horizon
		return s.keep(ctx, r.ID, now, &rec, payload, r.Retention, r.Remembered())
	})
}

// remembered returns the record of a claim as this process remembers it, or nil. It is
// right unless the record was written again since its claim, which the transaction
// detects.
func (s *Store) remembered(r *store.CompleteRequest) *found {
	at, mine := s.mine.end(r.Owner)
	if r.Attempt == 0 || !mine {
		return nil
	}
	now := &found{exists: true, revision: int64(r.Fence), liveAt: unread, record: record{ //nolint:gosec // revisions are positive
		state: inProgress, owner: r.Owner, fingerprint: r.Fingerprint, attempt: r.Attempt, fence: r.Fence, claimedAt: at, description: r.Description,
	}}
	now.record.setPolicy(r.Policy)
	return now
}

// keep writes a completed record, which lasts for kept, and its payload, which lasts for
// replayed, if the ID is still as it was found. Its results are those of write.
func (s *Store) keep(ctx context.Context, id store.ID, now *found, rec *record, payload string, replayed, kept time.Duration) (done bool, err error) {
	rec.completedAt, rec.size, rec.parts, rec.set = time.Now(), len(payload), 0, 0
	rec.whole = replayed == kept && len(payload) <= maxWhole
	var held *lease // of the parts
	if len(payload) > maxPart {
		if payload, held, err = s.split(ctx, id, rec, payload, replayed); held == nil {
			return false, err
		}
	}
	done, err = s.write(ctx, id, now, []time.Duration{replayed, kept}, func(ls []*lease) []clientv3.Op {
		if held != nil {
			ls[0] = held // so that all parts are deleted together
		}
		rec.spare = ls[1].spare(kept)
		value, ops := rec.encode(), []clientv3.Op{clientv3.OpDelete(s.key(alive, id))}
		if rec.whole {
			value += payload
		} else {
			ops = append(ops, clientv3.OpPut(s.key(payloads, id), payload, clientv3.WithLease(ls[0].id)))
		}
		ops = append(ops, clientv3.OpPut(s.key(records, id), value, clientv3.WithLease(ls[1].id)))
		if held != nil {
			ops = append(ops, s.otherParts(id, rec)...)
		}
		return ops
	})
	if held != nil && !done && (err == nil || errors.Is(err, store.ErrFull)) && now.record.set != rec.set {
		s.discard(ctx, id, rec)
	}
	return done, err
}

// Release implements [store.Store].
func (s *Store) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	s.mine.end(owner)
	return s.update(ctx, id, nil, func(now *found) (done bool, err error) {
		switch {
		case now.corrupt != nil:
			return true, now.corrupt
		case !now.exists, now.record.owner != owner, now.record.state != inProgress:
			return true, nil
		}
		return s.forget(ctx, id, now)
	})
}

// forget deletes everything of an ID, if it is still as it was found.
func (s *Store) forget(ctx context.Context, id store.ID, now *found) (done bool, err error) {
	return s.write(ctx, id, now, nil, func([]*lease) []clientv3.Op {
		return []clientv3.Op{
			clientv3.OpDelete(s.key(records, id)), clientv3.OpDelete(s.key(alive, id)), clientv3.OpDelete(s.key(payloads, id)),
			clientv3.OpDelete(s.key(parts, id)+"/", clientv3.WithPrefix()),
		}
	})
}

// Unknown implements [store.Store].
func (s *Store) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	s.mine.end(r.Owner)
	return s.update(ctx, r.ID, nil, func(now *found) (done bool, err error) {
		rec := now.record
		switch {
		case now.corrupt != nil:
			return true, now.corrupt
		case !now.exists, rec.owner != r.Owner, rec.state == completed:
			return true, store.ErrLeaseLost
		case rec.state == unknown:
			return true, nil // marked by an earlier call, whose reason stays
		}
		rec.state, rec.reason, rec.atMostOnce = unknown, r.Reason, true
		policy := rec.policy()
		kept := policy.Remembered()
		return s.write(ctx, r.ID, now, []time.Duration{kept}, func(ls []*lease) []clientv3.Op {
			rec.spare = ls[0].spare(kept)
			return []clientv3.Op{
				clientv3.OpPut(s.key(records, r.ID), rec.encode(), clientv3.WithLease(ls[0].id)), clientv3.OpDelete(s.key(alive, r.ID)),
			}
		})
	})
}

// each calls f for 0 to n-1, up to 16 at a time.
func each(n int, f func(i int)) {
	var group parallel.Group
	slots := make(chan struct{}, 16)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	group.Wait()
}
