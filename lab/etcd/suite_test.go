package etcd_test

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/store"
)

// grain is a unit of time well above late. A shorter one takes longer: cases that find
// that they took too long go on with twice the time.
const grain = 7 * time.Second

// late is how long after its end a lease may still hold: the second for which it is
// shared, the one to which it is rounded, and the half until the server looks.
const late = 2500 * time.Millisecond

func TestStoreConformance(t *testing.T) {
	t.Parallel()
	cluster := start(t, 1)
	client := connect(t, cluster.Addrs()...)
	storetest.Run(t, func(tb testing.TB) storetest.Fixture {
		mine := prefix()
		return storetest.Fixture{
			Open: func(tb testing.TB) store.Store { return open(tb, client, mine) },
			Advance: func(tb testing.TB, d time.Duration) {
				tb.Helper()
				conformance.Sleep(tb, d+late)
			},
			Grain:   grain,
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
