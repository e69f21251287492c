package repriseetcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/parallel"
)

// maxPart is the size of the largest value, in bytes. By default, a server accepts
// requests of up to 1.5 MiB.
const maxPart = 512 << 10

// Renew implements [store.Store], with one transaction for each entry. An entry that
// failed while others succeeded answers [store.RenewBusy].
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	for i := range rs {
		if err := rs[i].Validate(); err != nil {
			return nil, err
		}
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
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

func (s *Store) renew(ctx context.Context, r *store.RenewRequest) (store.RenewStatus, error) {
	now, err := s.inspect(ctx, r.ID)
	for {
		rec := &now.record
		switch {
		case err != nil:
			return 0, err
		case now.corrupt != nil, !now.exists, rec.owner != r.Owner, rec.state == unknown:
			return store.RenewLost, nil //nolint:nilerr // an unreadable record belongs to no attempt of this release
		case rec.state == completed:
			return store.RenewCompleted, nil
		}
		left, leaseErr := s.leases.left(ctx, now.lease)
		if leaseErr != nil {
			return 0, leaseErr
		}
		valid := left - rec.spare
		periods := together(r.Lease, valid)
		if periods[0] != periods[1] {
			periods = periods[:1] // the record already outlasts the lease
		}
		var done bool
		_, done, err = s.write(ctx, r.ID, &now, periods, func(ls []*lease) []clientv3.Op {
			if len(ls) == 1 {
				return []clientv3.Op{clientv3.OpPut(s.key(alive, r.ID), liveValue(ls[0].spare(r.Lease)), clientv3.WithLease(ls[0].id))}
			}
			rec.spare = ls[1].spare(valid)
			return s.running(r.ID, r.Lease, rec, ls)
		})
		if done {
			return store.Renewed, nil
		}
	}
}

// Complete implements [store.Store]. It is one transaction of etcd, unless the payload is
// larger than 512 KiB: then its parts are written first.
func (s *Store) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	payload := string(r.Payload)
	now, err := s.claimed(ctx, &r)
	for {
		rec := now.record
		switch {
		case err != nil:
			return err
		case now.corrupt != nil:
			return now.corrupt
		case !now.exists, rec.owner != r.Owner, rec.state == unknown:
			return store.ErrLeaseLost
		case rec.state == completed:
			return nil // by an earlier call, whose payload stays
		}
		rec.state, rec.retention, rec.horizon = completed, r.Retention, r.Horizon
		var done bool
		if done, err = s.keep(ctx, r.ID, &now, &rec, payload, r.Retention, r.Remembered()); done {
			return nil
		}
	}
}

// claimed returns the record of a claim: as this process remembers it, or else as the
// server has it. The remembered one is right unless the record was written again since
// its claim, which the transaction detects.
func (s *Store) claimed(ctx context.Context, r *store.CompleteRequest) (found, error) {
	at, mine := s.mine.end(r.Owner)
	if r.Attempt == 0 || !mine {
		return s.inspect(ctx, r.ID)
	}
	now := found{exists: true, revision: int64(r.Fence), liveAt: unread, record: record{ //nolint:gosec // revisions are positive
		state: inProgress, owner: r.Owner, fingerprint: r.Fingerprint, attempt: r.Attempt, fence: r.Fence, claimedAt: at, description: r.Description,
	}}
	now.record.setPolicy(r.Policy)
	return now, nil
}

// keep writes a completed record, which lasts for kept, and its payload, which lasts for
// replayed, if the ID is still as it was found. Otherwise its results are those of write.
func (s *Store) keep(ctx context.Context, id store.ID, now *found, rec *record, payload string, replayed, kept time.Duration) (done bool, err error) {
	rec.completedAt, rec.size, rec.parts, rec.set = time.Now(), len(payload), 0, 0
	var held *lease // of the parts
	if len(payload) > maxPart {
		if payload, held, err = s.split(ctx, id, rec, payload, replayed); held == nil {
			return false, err
		}
	}
	_, done, err = s.write(ctx, id, now, []time.Duration{replayed, kept}, func(ls []*lease) []clientv3.Op {
		if held != nil {
			ls[0] = held // so that all parts are deleted together
		}
		rec.spare = ls[1].spare(kept)
		ops := []clientv3.Op{
			clientv3.OpPut(s.key(records, id), rec.encode(), clientv3.WithLease(ls[1].id)),
			clientv3.OpPut(s.key(payloads, id), payload, clientv3.WithLease(ls[0].id)),
			clientv3.OpDelete(s.key(alive, id)),
		}
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

// discard deletes the parts of a set that no record names and none will. Those that it
// misses, for example because ctx was cancelled, are deleted by a later completion with
// a payload of several parts, or with their lease.
func (s *Store) discard(ctx context.Context, id store.ID, rec *record) {
	_, _ = s.client.Delete(ctx, s.partsOf(id, rec), clientv3.WithPrefix())
}

// discarding is the largest part of a deadline that is kept for discard.
const discarding = time.Second

// withReserve returns a context that ends before ctx does, so that time is left to
// discard the parts that were sent.
func withReserve(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-min(discarding, time.Until(deadline)/5)))
}

// otherParts returns the operations that delete the parts of an ID but those of rec: an
// earlier completion left them, whose result is unknown. If it is still on its way, it
// finds the record changed.
func (s *Store) otherParts(id store.ID, rec *record) []clientv3.Op {
	all, mine := s.key(parts, id)+"/", s.partsOf(id, rec)
	return []clientv3.Op{
		clientv3.OpDelete(all, clientv3.WithRange(mine)),
		clientv3.OpDelete(clientv3.GetPrefixRangeEnd(mine), clientv3.WithRange(clientv3.GetPrefixRangeEnd(all))),
	}
}

// partsOf returns the start of the keys of a payload's parts.
func (s *Store) partsOf(id store.ID, rec *record) string {
	return fmt.Sprintf("%s/%016x/", s.key(parts, id), rec.set)
}

func (s *Store) part(id store.ID, rec *record, number int) string {
	return fmt.Sprintf("%s%04x", s.partsOf(id, rec), number)
}

// sending is how long it may take to send the parts of a payload.
const sending = 30 * time.Second

// split writes the parts of a payload under a new set. It returns the rest, for the
// payload's own key, and the lease of the parts, which still lasts long enough. Without a
// lease it has discarded them, and unless there is an error, the caller tries again.
func (s *Store) split(ctx context.Context, id store.ID, rec *record, payload string, replayed time.Duration) (rest string, held *lease, err error) {
	if held, err = s.leases.lasting(ctx, replayed+sending); err != nil {
		return "", nil, classify(err)
	}
	rec.set = rand.Uint64() //nolint:gosec // it has to be unique only
	defer func() {
		if held == nil {
			s.discard(ctx, id, rec)
		}
	}()
	puts, cancel := withReserve(ctx)
	defer cancel()
	for len(payload) > maxPart {
		_, err := s.client.Put(puts, s.part(id, rec, rec.parts), payload[:maxPart], clientv3.WithLease(held.id))
		if answered(err, rpctypes.ErrLeaseNotFound) {
			s.leases.drop(held)
			return "", nil, nil
		}
		if err != nil {
			return "", nil, classify(err)
		}
		rec.parts++
		payload = payload[maxPart:]
	}
	if held.until.left() < replayed {
		return "", nil, nil // it took too long
	}
	return payload, held, nil
}

// join returns the payload of a record. It reads the parts at the revision at which the
// record was read.
func (s *Store) join(ctx context.Context, id store.ID, now *found) ([]byte, error) {
	rec := &now.record
	var payload []byte // not allocated by the size in the record, which may be damaged
	for number := range rec.parts {
		r, err := s.client.Get(ctx, s.part(id, rec, number), clientv3.WithRev(now.at))
		if err != nil {
			return nil, classify(err)
		}
		if len(r.Kvs) == 0 {
			return nil, fail(store.ErrCorrupt, errors.New("a part of the payload is missing"))
		}
		payload = append(payload, r.Kvs[0].Value...)
	}
	if payload = append(payload, now.payload...); len(payload) != rec.size {
		return nil, fail(store.ErrCorrupt, fmt.Errorf("the payload has %d bytes, want %d", len(payload), rec.size))
	}
	return payload, nil
}

// Release implements [store.Store].
func (s *Store) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	s.mine.end(owner)
	now, err := s.inspect(ctx, id)
	for {
		switch {
		case err != nil:
			return err
		case now.corrupt != nil:
			return now.corrupt
		case !now.exists, now.record.owner != owner, now.record.state != inProgress:
			return nil
		}
		var done bool
		if _, done, err = s.write(ctx, id, &now, nil, s.forget(id)); done {
			return nil
		}
	}
}

// forget returns the operations that delete everything of an ID.
func (s *Store) forget(id store.ID) func([]*lease) []clientv3.Op {
	return func([]*lease) []clientv3.Op {
		return []clientv3.Op{
			clientv3.OpDelete(s.key(records, id)), clientv3.OpDelete(s.key(alive, id)), clientv3.OpDelete(s.key(payloads, id)),
			clientv3.OpDelete(s.key(parts, id)+"/", clientv3.WithPrefix()),
		}
	}
}

// Unknown implements [store.Store].
func (s *Store) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	s.mine.end(r.Owner)
	now, err := s.inspect(ctx, r.ID)
	for {
		rec := now.record
		switch {
		case err != nil:
			return err
		case now.corrupt != nil:
			return now.corrupt
		case !now.exists, rec.owner != r.Owner, rec.state == completed:
			return store.ErrLeaseLost
		case rec.state == unknown:
			return nil // marked by an earlier call, whose reason stays
		}
		rec.state, rec.reason, rec.atMostOnce = unknown, r.Reason, true
		policy := rec.policy()
		kept := []time.Duration{policy.Remembered()}
		var done bool
		_, done, err = s.write(ctx, r.ID, &now, kept, func(ls []*lease) []clientv3.Op {
			rec.spare = ls[0].spare(kept[0])
			return []clientv3.Op{
				clientv3.OpPut(s.key(records, r.ID), rec.encode(), clientv3.WithLease(ls[0].id)), clientv3.OpDelete(s.key(alive, r.ID)),
			}
		})
		if done {
			return nil
		}
	}
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
