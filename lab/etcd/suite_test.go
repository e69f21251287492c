package etcd_test

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
)

func TestStoreConformance(t *testing.T) {
	t.Parallel()
	cluster := etcdcluster.Start(t, 1)
	client := etcdcluster.Connect(t, cluster.Addrs()...)
	storetest.Run(t, func(tb testing.TB) storetest.Fixture {
		mine := etcdcluster.Prefix()
		return storetest.Fixture{
			Open: func(tb testing.TB) store.Store { return etcdcluster.Open(tb, client, mine) },
			Advance: func(tb testing.TB, d time.Duration) {
				tb.Helper()
				etcdcluster.Advance(tb, client, mine, d)
			},
			Grain:   etcdcluster.Grain,
			Corrupt: func(tb testing.TB, id store.ID, how storetest.Corruption) { corrupt(tb, client, mine, id, how) },
		}
	})
}

// corrupt damages the record of an ID.
func corrupt(tb testing.TB, client *clientv3.Client, prefix string, id store.ID, how storetest.Corruption) {
	tb.Helper()
	key := prefix + "r/" + id.String()
	r, err := client.Get(tb.Context(), key)
	if err != nil || len(r.Kvs) != 1 {
		tb.Fatalf("%d records, %v", len(r.Kvs), err)
	}
	value := r.Kvs[0].Value
	switch how {
	case storetest.UnknownVersion:
		value[0] = 9
	case storetest.UnknownState:
		value[1] = 9
	case storetest.Truncated:
		value = value[:len(value)-1]
	case storetest.WrongType:
		value = []byte("not a record")
	default:
		tb.Fatalf("an unknown corruption: %s", how)
	}
	if _, err := client.Put(tb.Context(), key, string(value), clientv3.WithLease(clientv3.LeaseID(r.Kvs[0].Lease))); err != nil {
		tb.Fatal(err)
	}
}
