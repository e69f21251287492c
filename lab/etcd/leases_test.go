package etcd_test

import (
	"strconv"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
)

// The server deletes all keys of a lease at once, and answers no other request meanwhile.
func TestLeaseHasAFewThousandKeysAtMost(t *testing.T) {
	t.Parallel()
	client := single(t)
	st := etcdcluster.Open(t, client, etcdcluster.Prefix())
	const callers, each, most = 32, 125, 5_500 // those of the bound, and of the calls on their way
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for n := range each {
				r := claimOf(strconv.Itoa(caller) + "/" + strconv.Itoa(n))
				got, err := st.Claim(t.Context(), r)
				if err == nil {
					err = st.Complete(t.Context(), completionOf(&r, &got))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	leases, err := client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, l := range leases.Leases {
		held, err := client.TimeToLive(t.Context(), l.ID, clientv3.WithAttachedKeys())
		if err != nil {
			t.Fatal(err)
		}
		total += len(held.Keys)
		if len(held.Keys) > most {
			t.Errorf("a lease has %d keys, want %d at most", len(held.Keys), most)
		}
	}
	if total < 2*callers*each {
		t.Errorf("%d keys have leases, want those of %d records and their payloads", total, callers*each)
	}
}
