package repriseetcd

import (
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
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return store.ClaimResult{}, err
	}
	if err := s.ready(ctx); err != nil {
		return store.ClaimResult{}, err
	}
	var now found // an ID is assumed to be new until the server says otherwise
	if s.recent.ReplaysCommon() {
		var err error
		if now, err = s.inspect(ctx, r.ID); err != nil {
			return store.ClaimResult{}, err
		}
	}
	for {
		answer, next := judge(&r, &now)
		if next == nil {
			s.recent.Count(true)
			return s.answer(ctx, &r, answer, &now)
		}
		fence, done, err := s.grant(ctx, &r, next, &now)
		if errors.Is(err, store.ErrFull) && now.record.owner == r.Owner {
			err = fmt.Errorf("%w: %v", store.ErrUnknown, err) //nolint:errorlint // this owner holds the claim already, and could not extend it
		}
		if err != nil {
			return store.ClaimResult{}, err
		}
		if done {
			answer.Fence = next.fence
			if next.fence == 0 {
				answer.Fence = fence
			}
			answer.Attempt, answer.Remaining = next.attempt, r.Lease
			s.mine.begin(r.Owner, next.claimedAt)
			s.recent.Count(false)
			return answer, nil
		}
	}
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

// grant writes a claim, if the ID is still as it was found; otherwise it updates now.
func (s *Store) grant(ctx context.Context, r *store.ClaimRequest, next *record, now *found) (fence uint64, done bool, err error) {
	revision, done, err := s.write(ctx, r.ID, now, together(r.Lease, r.Remembered()), func(ls []*lease) []clientv3.Op {
		next.spare = ls[1].spare(r.Remembered())
		return s.running(r.ID, r.Lease, next, ls)
	})
	return uint64(revision), done, err //nolint:gosec // revisions are positive
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
	return []clientv3.Op{
		clientv3.OpPut(s.key(alive, id), liveValue(ls[0].spare(attempt)), clientv3.WithLease(ls[0].id)),
		clientv3.OpPut(s.key(records, id), rec.encode(), clientv3.WithLease(ls[1].id)),
	}
}

// answer completes an answer that needs no write.
func (s *Store) answer(ctx context.Context, r *store.ClaimRequest, answer store.ClaimResult, now *found) (store.ClaimResult, error) {
	switch {
	case now.corrupt != nil:
		return store.ClaimResult{}, now.corrupt
	case answer.Outcome == store.InProgress:
		left, err := s.leases.left(ctx, now.liveTill)
		answer.Remaining = max(left-now.spare, time.Millisecond) // its key exists, so it still runs
		return answer, err
	case answer.Outcome == store.Completed && now.record.parts > 0:
		payload, err := s.join(ctx, r.ID, now)
		if err != nil {
			return store.ClaimResult{}, err
		}
		answer.Payload = payload
	}
	return answer, nil
}

// write makes changes under leases for periods, if an ID is still as it was found. If
// done is false without an error, it has not written, and the caller tries again: either
// the ID has changed, and write updated now, or the server did not know a lease.
func (s *Store) write(ctx context.Context, id store.ID, now *found, periods []time.Duration, ops func([]*lease) []clientv3.Op) (revision int64, done bool, err error) {
	used := make([]*lease, 0, 2)
	for _, period := range periods {
		if last := len(used) - 1; last >= 0 && period == periods[last] {
			used = append(used, used[last]) // so that both end together
			continue
		}
		l, err := s.leases.lasting(ctx, period)
		if answered(err, rpctypes.ErrNoSpace) {
			return 0, false, s.refused(ctx, id, now, err)
		}
		if err != nil {
			return 0, false, classify(err)
		}
		used = append(used, l)
	}
	other, revision, done, err := s.change(ctx, id, now, ops(used)...)
	switch {
	case answered(err, rpctypes.ErrLeaseNotFound): // an operator revoked it, or the cluster was restored from a backup
		for _, l := range used {
			s.leases.drop(l)
		}
		return 0, false, nil
	case answered(err, rpctypes.ErrNoSpace):
		return 0, false, s.refused(ctx, id, now, err)
	case err != nil:
		return 0, false, classify(err)
	case !done:
		*now = other
	}
	return revision, done, nil
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
