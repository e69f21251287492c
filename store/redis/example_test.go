package repriseredis_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// The client is a *redis.Client for a single server or Sentinel, or a
// *redis.ClusterClient.
func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()

	store, err := repriseredis.New(client, repriseredis.Config{Prefix: "orders:"})
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	_ = store // for protocol.New
	// Output: ready
}

func ExampleNew_cluster() {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"localhost:7000"}, ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()

	_, err := repriseredis.New(client, repriseredis.Config{
		Prefix:     "shop:",
		Durability: repriseredis.Acked(1),
		AckTimeout: 200 * time.Millisecond,
	})
	fmt.Println(err)
	// Output: <nil>
}

// Open finds a server that is down, or that cannot hold the guarantees, when the service
// starts.
func ExampleOpen() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:1", DialerRetries: 1, ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()

	_, err := repriseredis.Open(ctx, client, repriseredis.Config{Prefix: "orders:"})
	fmt.Println(errors.Is(err, store.ErrUnavailable))
	// Output: true
}
