package repriseetcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/core/store"
)

// broken is a client whose server grants leases, and accepts parts without answering. It
// deletes them if deletes is true, and otherwise does not answer that either.
type broken struct {
	clientv3.KV
	clientv3.Lease

	deletes bool
	deleted bool
}

func (b *broken) Grant(_ context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	return &clientv3.LeaseGrantResponse{ResponseHeader: new(pb.ResponseHeader), ID: 1, TTL: ttl}, nil
}

func (b *broken) Put(ctx context.Context, _, _ string, _ ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (b *broken) Delete(ctx context.Context, _ string, _ ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	if b.deletes && ctx.Err() == nil {
		b.deleted = true
		return new(clientv3.DeleteResponse), nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (b *broken) Txn(context.Context) clientv3.Txn { panic("of the client") }

func (b *broken) store(t *testing.T) *Store {
	t.Helper()
	client := clientv3.NewCtxClient(t.Context())
	client.KV, client.Lease = b, b
	s, err := New(client, Config{Prefix: servicePrefix})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCompleteReturnsWithItsContext: also if a part of its payload was sent and has to be
// deleted. It keeps time for that unless the context is cancelled.
func TestCompleteReturnsWithItsContext(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	for name, c := range map[string]struct {
		deletes bool
		within  time.Duration // the deadline; without one, the context is cancelled after limit
		took    time.Duration
	}{
		"deadline":               {true, limit, limit * 4 / 5},
		"long deadline":          {true, 10 * limit, 10*limit - time.Second},
		"deadline, not deleted":  {false, limit, limit},
		"cancelled, not deleted": {false, 0, limit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := &broken{deletes: c.deletes}
				s := b.store(t)
				owner := store.NewOwner()
				s.mine.begin(owner, time.Now())
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.within == 0 {
					time.AfterFunc(limit, cancel)
				} else {
					ctx, cancel = context.WithTimeout(ctx, c.within)
					defer cancel()
				}
				begun := time.Now()
				err := s.Complete(ctx, store.CompleteRequest{
					Owner: owner, Attempt: 1, Fence: 1, Policy: store.Policy{Retention: time.Hour}, Payload: make([]byte, 3*maxPart),
				})
				if took := time.Since(begun); took != c.took || !errors.Is(err, store.ErrUnknown) {
					t.Errorf("after %v: %v; want ErrUnknown after %v", took, err, c.took)
				}
				if b.deleted != c.deletes {
					t.Errorf("the parts were deleted: %t", b.deleted)
				}
			})
		})
	}
}

// TestPanicOfTheClientReachesTheCallerOfRenew instead of ending the process.
func TestPanicOfTheClientReachesTheCallerOfRenew(t *testing.T) {
	t.Parallel()
	s := new(broken).store(t)
	defer func() {
		if p := recover(); p != "of the client" {
			t.Errorf("panic %v", p)
		}
	}()
	_, _ = s.Renew(t.Context(), []store.RenewRequest{{Owner: store.NewOwner(), Lease: time.Minute}, {Owner: store.NewOwner(), Lease: time.Minute}})
}
