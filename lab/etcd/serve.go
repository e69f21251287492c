// Package etcd proves store/etcd on real servers of etcd, which its tests build from
// their module, and serves it. It is a module outside of the workspace, so
// that a refused server takes down only this, and the client's release of gRPC stays out
// of the tests on the oldest one.
package etcd

import (
	"context"
	"errors"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/reprise-go/reprise/lab/serve"
	repriseetcd "github.com/reprise-go/reprise/store/etcd"
)

// Connect returns a client of members. It leaves a member that froze within 13 seconds.
func Connect(addrs ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: addrs, DialTimeout: 10 * time.Second, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		Logger: zap.NewNop(),
	})
}

// Register adds the store etcd to the package serve.
func Register() { serve.Register("etcd", open) }

// open opens the store at the members of o.
func open(ctx context.Context, b *serve.Backend, o serve.StoreOptions) (func(), error) {
	if o.EtcdURL == "" {
		return nil, errors.New("needs -etcd-url")
	}
	client, err := Connect(strings.Split(o.EtcdURL, ",")...)
	if err != nil {
		return nil, err
	}
	closes := func() { _ = client.Close() }
	st, err := repriseetcd.Open(ctx, client, repriseetcd.Config{Prefix: "reprise/"})
	b.Store = st
	return closes, err
}
