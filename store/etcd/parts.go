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
)

// maxPart is the size of the largest value, in bytes. By default, a server accepts
// requests of up to 1.5 MiB.
const maxPart = 512 << 10

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
