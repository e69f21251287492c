package etcd_test

import (
	"context"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// TestEtcdCostOfAKey: a new key is two transactions that write to the Raft log, and a
// replay is one, or one that only reads a key while replays are common; a lease, which
// others share, is granted at most once for each. And how much of the members' database a
// key takes, whose response has 256 bytes, its content type and the protocol's overhead:
// with all that was written of it, and once that is compacted.
func TestEtcdCostOfAKey(t *testing.T) {
	t.Parallel()
	const mostWritten, mostKept, keys = 1500, 800, 1000
	payload := []byte(strings.Repeat("p", 256+51))
	var calls counted
	client, err := clientv3.New(clientv3.Config{
		Endpoints: etcdcluster.Start(t, 1).Addrs(), DialTimeout: 10 * time.Second, DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(calls.count)},
	})
	labtest.Must(t, err)
	defer client.Close()
	st := etcdcluster.Open(t, client, etcdcluster.Prefix())
	newKey := func(name string) {
		_, end := claimed(t, st, name)
		end.Payload = payload
		if err := st.Complete(t.Context(), end); err != nil {
			t.Error(err)
		}
	}
	replay := func() {
		if got, err := st.Claim(t.Context(), claimOf("first")); err != nil || got.Outcome != store.Completed {
			t.Errorf("%v, %v", got.Outcome, err)
		}
	}
	newKey("first")
	for _, of := range []struct {
		what      string
		operation func()
		want      map[string]int
	}{
		{"a new key", func() { newKey("second") }, map[string]int{"Txn": 2}},
		{"a replay", replay, map[string]int{"Txn": 1}},
		{"more replays", func() {
			for range 100 {
				replay()
			}
		}, nil},
		{"a replay while they are common", replay, map[string]int{"read of 1": 1}},
		{"a new key while they are common", func() { newKey("third") }, map[string]int{"read of 1": 1, "Txn": 2}},
	} {
		calls.reset()
		of.operation()
		got := calls.reset()
		leases := got["LeaseGrant"]
		t.Logf("%s: %v", of.what, got)
		delete(got, "LeaseGrant")
		if of.want != nil && (!maps.Equal(got, of.want) || leases > 2) {
			t.Errorf("%s: %v and %d leases, want %v", of.what, got, leases, of.want)
		}
	}

	before := used(t, client)
	var filling sync.WaitGroup
	for n := range 8 {
		filling.Go(func() {
			for i := range keys / 8 {
				newKey(strconv.Itoa(n) + "/" + strconv.Itoa(i))
			}
		})
	}
	filling.Wait()
	written := (used(t, client) - before) / keys
	last, err := client.Get(t.Context(), "none")
	if err == nil {
		_, err = client.Compact(t.Context(), last.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err == nil {
		_, err = client.Defragment(t.Context(), client.Endpoints()[0])
	}
	labtest.Must(t, err)
	kept := (used(t, client) - before) / keys
	t.Logf("%d bytes of the database are written, and %d are left once that is compacted", written, kept)
	if written > mostWritten || kept > mostKept {
		t.Errorf("%d bytes of the database are written, and %d are left; want at most %d and %d", written, kept, mostWritten, mostKept)
	}
}

// used returns how much of its database a member uses.
func used(t *testing.T, client *clientv3.Client) int64 {
	t.Helper()
	s, err := client.Status(t.Context(), client.Endpoints()[0])
	labtest.Must(t, err)
	return s.DbSizeInUse
}

// counted counts the calls of a client by their methods.
type counted struct {
	mu     sync.Mutex
	byName map[string]int
}

func (c *counted) count(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	c.mu.Lock()
	if c.byName != nil {
		name := path.Base(method)
		if txn, ok := req.(*etcdserverpb.TxnRequest); ok && reads(txn.Success) && reads(txn.Failure) {
			name = "read of " + strconv.Itoa(len(txn.Success)) // keys
		}
		c.byName[name]++
	}
	c.mu.Unlock()
	return invoke(ctx, method, req, reply, conn, opts...)
}

// reads reports whether operations only read, which adds no entry to the log.
func reads(ops []*etcdserverpb.RequestOp) bool {
	return !slices.ContainsFunc(ops, func(op *etcdserverpb.RequestOp) bool { return op.GetRequestRange() == nil })
}

// reset begins anew, and returns the calls since the last one.
func (c *counted) reset() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.byName
	c.byName = map[string]int{}
	return calls
}
