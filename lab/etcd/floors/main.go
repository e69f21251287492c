// Floors serves the baselines of the adapter for net/http, etcd among them: see the
// package floors of lab/bench.
package main

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	apphttp "github.com/reprise-go/reprise/adapters/nethttp/nativeapp"
	"github.com/reprise-go/reprise/lab/bench/floors"
	"github.com/reprise-go/reprise/lab/etcd"
)

func main() {
	floors.RegisterEtcd(func(_ context.Context, members string) (floors.Round, func(), error) {
		client, err := etcd.Connect(strings.Split(members, ",")...)
		return transactions{client}, func() { _ = client.Close() }, err
	})
	floors.Main("nethttp", apphttp.NewBare)
}

// transactions are the floor over etcd.
type transactions struct{ client *clientv3.Client }

func key(id [32]byte) string { return "floor/" + string(id[:]) }

func (t transactions) put(ctx context.Context, id [32]byte, value []byte) error {
	_, err := t.client.Txn(ctx).Then(clientv3.OpPut(key(id), string(value))).Commit()
	return err
}

// Claim implements [floors.Round]. The value is as long as what a record keeps of a
// claim: owner, fingerprint and other fields.
func (t transactions) Claim(ctx context.Context, id [32]byte) error {
	return t.put(ctx, id, make([]byte, 96))
}

// Complete implements [floors.Round].
func (t transactions) Complete(ctx context.Context, id [32]byte, body []byte) error {
	return t.put(ctx, id, body)
}

// Replay implements [floors.Round].
func (t transactions) Replay(ctx context.Context, id [32]byte) ([]byte, error) {
	r, err := t.client.Get(ctx, key(id))
	if err != nil || len(r.Kvs) == 0 {
		return nil, err
	}
	return r.Kvs[0].Value, nil
}
