package repriseetcd_test

import (
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	repriseetcd "github.com/reprise-go/reprise/store/etcd"
)

// The client leaves a member that froze after a few seconds.
func Example() {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:         []string{"10.0.0.1:2379", "10.0.0.2:2379", "10.0.0.3:2379"},
		DialKeepAliveTime: 3 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Close() }()

	store, err := repriseetcd.New(client, repriseetcd.Config{Prefix: "orders/"}) // a service takes Open, which asks the cluster
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	_ = store // for protocol.New
	// Output: ready
}
