package etcd_test

import (
	"strconv"
	"testing"

	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// BenchmarkEtcd compares a key of the store, a claim and a completion, with its floor:
// two transactions that write a value each.
func BenchmarkEtcd(b *testing.B) {
	client, mine := etcdcluster.Connect(b, etcdcluster.Start(b, 3).Addrs()...), etcdcluster.Prefix()
	st := etcdcluster.Open(b, client, mine)
	value := string(make([]byte, 200))
	b.Run("floor", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			key := mine + "floor/" + strconv.Itoa(n)
			for range 2 {
				if _, err := client.Txn(b.Context()).Then(clientv3.OpPut(key, value)).Commit(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	keys := 0
	b.Run("store", func(b *testing.B) {
		for b.Loop() {
			keys++
			_, end := claimed(b, st, strconv.Itoa(keys))
			end.Payload = []byte(value)
			if err := st.Complete(b.Context(), end); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("replay", func(b *testing.B) {
		again := claimOf("1")
		for b.Loop() {
			if _, err := st.Claim(b.Context(), again); err != nil {
				b.Fatal(err)
			}
		}
	})
}
