package repriseetcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/core/store"
)

// Claim implements [store.Store]. It writes at once, as a new ID needs it, and reads
// first while many claims turn out to need no write: a read adds no entry to the log.
// The server decides whether an attempt is live: it keeps a key for as long as the lease
// of the attempt runs.
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (answer store.ClaimResult, err error) {
	if err := r.Validate(); err != nil {
		return store.ClaimResult{}, err
	}
	was := new(found) // an ID is assumed to be new until the server says otherwise
	if s.recent.Common() {
		was = nil
		if r.Horizon == 0 { // otherwise a payload has its own key
			if was, err = s.glance(ctx, r.ID); err != nil {
				return store.ClaimResult{}, err
			}
		}
	}
	err = s.update(ctx, r.ID, was, func(now *found) (done bool, err error) {
		var next *record
		if answer, next = judge(&r, now); next == nil {
			s.recent.Count(true)
			return true, s.answer(ctx, &r, &answer, now)
		}
		done, err = s.write(ctx, r.ID, now, together(r.Lease, r.Remembered()), func(ls []*lease) []clientv3.Op {
			next.spare = ls[1].spare(r.Remembered())
			return s.running(r.ID, r.Lease, next, ls)
		})
		if errors.Is(err, store.ErrFull) && now.record.owner == r.Owner {
			err = fmt.Errorf("%w: %v", store.ErrUnknown, err) //nolint:errorlint // this owner holds the claim already, and could not extend it
		}
		if done {
			answer.Fence = cmp.Or(next.fence, uint64(now.revision)) //nolint:gosec // revisions are positive
			answer.Attempt, answer.Remaining = next.attempt, r.Lease
			s.mine.begin(r.Owner, next.claimedAt)
			s.recent.Count(false)
		}
		return done, err
	})
	if err != nil {
		return store.ClaimResult{}, err
	}
	return answer, nil
}

// judge decides in the order that [store.Store] gives. If it returns a record, that must
// be written for the answer to hold.
func judge(r *store.ClaimRequest, now *found) (answer store.ClaimResult, next *record) {
	rec := &now.record
	switch {
	case !now.exists && now.live: // shared leases end late, so the attempt's may outlast the record's by seconds
		return store.ClaimResult{Outcome: store.InProgress}, nil
	case !now.exists:
		return attempt(r, 1)
	case now.corrupt != nil:
		return store.ClaimResult{}, nil
	case rec.fingerprint != r.Fingerprint:
		return store.ClaimResult{Outcome: store.Mismatch}, nil
	case rec.state == completed && !now.replayed:
		return store.ClaimResult{Outcome: store.Expired}, nil
	case rec.state == completed:
		return store.ClaimResult{Outcome: store.Completed, Payload: now.payload}, nil
	case now.live && rec.owner == r.Owner:
		again := *rec
		again.setPolicy(r.Policy)
		again.description = r.Description
		return store.ClaimResult{Outcome: store.Claimed}, &again
	case now.live:
		return store.ClaimResult{Outcome: store.InProgress}, nil
	case rec.state == unknown:
		return store.ClaimResult{Outcome: store.Lapsed}, nil
	case rec.owner == r.Owner: // lapsed but not taken over: the engine renews it before it runs the operation
		return store.ClaimResult{Outcome: store.Claimed, Attempt: rec.attempt, Fence: rec.fence}, nil
	case rec.atMostOnce, !r.Takeover, r.MaxAttempts > 0 && rec.attempt >= r.MaxAttempts:
		return store.ClaimResult{Outcome: store.Lapsed}, nil
	default:
		return attempt(r, rec.attempt+1)
	}
}

// attempt returns the record of the next attempt. Its fence is the revision of the write
// of this record, which is unique in the cluster.
func attempt(r *store.ClaimRequest, number int) (store.ClaimResult, *record) {
	rec := &record{
		state: inProgress, owner: r.Owner, fingerprint: r.Fingerprint, attempt: number, claimedAt: time.Now(), description: r.Description,
	}
	rec.setPolicy(r.Policy)
	return store.ClaimResult{Outcome: store.Claimed}, rec
}

// together returns the periods of the leases for an attempt and for its record. The
// record must not end first, so if their ends are close, they share one lease.
func together(attempt, remembered time.Duration) []time.Duration {
	if remembered < attempt+2*sharing(attempt) {
		both := max(attempt, remembered)
		return []time.Duration{both, both}
	}
	return []time.Duration{attempt, remembered}
}

// running returns the operations that write the record of an attempt whose lease runs.
func (s *Store) running(id store.ID, attempt time.Duration, rec *record, ls []*lease) []clientv3.Op {
	return []clientv3.Op{s.putLive(id, attempt, ls[0]), clientv3.OpPut(s.key(records, id), rec.encode(), clientv3.WithLease(ls[1].id))}
}

// putLive returns the operation that lets an attempt live for as long as a lease of etcd.
func (s *Store) putLive(id store.ID, attempt time.Duration, l *lease) clientv3.Op {
	return clientv3.OpPut(s.key(alive, id), liveValue(l.spare(attempt)), clientv3.WithLease(l.id))
}

// answer completes an answer that needs no write.
func (s *Store) answer(ctx context.Context, r *store.ClaimRequest, answer *store.ClaimResult, now *found) (err error) {
	switch {
	case now.corrupt != nil:
		return now.corrupt
	case answer.Outcome == store.InProgress:
		var left time.Duration
		left, err = s.leases.left(ctx, now.liveTill)
		answer.Remaining = max(left-now.spare, time.Millisecond) // its key exists, so it still runs
	case answer.Outcome == store.Completed && now.record.parts > 0:
		answer.Payload, err = s.join(ctx, r.ID, now)
	}
	return err
}

// update lets try change the record of an ID: as was says that it is, or as it is found,
// without that. It calls try again while that neither is done nor fails, because the
// record changed in between.
func (s *Store) update(ctx context.Context, id store.ID, was *found, try func(now *found) (done bool, err error)) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if was == nil {
		now, err := s.inspect(ctx, id)
		if err != nil {
			return err
		}
		was = &now
	}
	for {
		if done, err := try(was); done || err != nil {
			return err
		}
	}
}

// write makes changes under leases for periods, if an ID is still as it was found, and
// updates its revision. If done is false without an error, it has not written, and the
// caller tries again: either the ID has changed, and write updated now, or the server did
// not know a lease.
func (s *Store) write(ctx context.Context, id store.ID, now *found, periods []time.Duration, ops func([]*lease) []clientv3.Op) (done bool, err error) {
	used := make([]*lease, 0, 2)
	for _, period := range periods {
		if last := len(used) - 1; last >= 0 && period == periods[last] {
			used = append(used, used[last]) // so that both end together
			continue
		}
		var l *lease
		if l, err = s.leases.lasting(ctx, period); err != nil {
			break
		}
		used = append(used, l)
	}
	if err == nil {
		done, err = s.change(ctx, id, now, ops(used)...)
	}
	switch {
	case answered(err, rpctypes.ErrLeaseNotFound): // an operator revoked it, or the cluster was restored from a backup
		for _, l := range used {
			s.leases.drop(l)
		}
		return false, nil
	case answered(err, rpctypes.ErrNoSpace):
		return false, s.refused(ctx, id, now, err)
	default:
		return done, classify(err)
	}
}

// refused returns the error for a write that the server answered with ErrNoSpace. The
// write that crosses the quota gets this answer although it was executed, so refused
// reads the ID. If the ID had not been read before, it updates now and returns no error,
// because the call may need no write.
func (s *Store) refused(ctx context.Context, id store.ID, now *found, answer error) error {
	was := *now
	other, err := s.inspect(ctx, id)
	switch {
	case err != nil:
		return fail(store.ErrUnknown, answer)
	case was.at == 0:
		*now = other
		return nil
	case other.revision != was.revision || other.liveAt != was.liveAt:
		return fail(store.ErrUnknown, answer)
	default:
		return classify(answer)
	}
}
