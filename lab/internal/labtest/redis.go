package labtest

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/reprise-go/reprise/core/store"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// RedisClient returns a client of addr, closed when the test ends.
func RedisClient(tb testing.TB, addr string) *redis.Client {
	tb.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// RedisCluster returns a client of a cluster, closed when the test ends. It avoids a data
// race of go-redis: the clients of the nodes share the configuration of maintenance
// notifications, and each turns them off under its own lock.
func RedisCluster(tb testing.TB, o *redis.ClusterOptions) *redis.ClusterClient {
	tb.Helper()
	o.ContextTimeoutEnabled = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewClusterClient(o)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// ServicePrefix is the prefix of tests that have a server for themselves.
const ServicePrefix = "orders:"

// RedisStore returns a store with a configuration that has to be good, closed when the
// test ends. Without a prefix it has ServicePrefix.
func RedisStore(tb testing.TB, client redis.UniversalClient, c repriseredis.Config) *repriseredis.Store {
	tb.Helper()
	c.Prefix = cmp.Or(c.Prefix, ServicePrefix)
	store, err := repriseredis.New(client, c)
	Must(tb, err)
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

// RedisPrefix returns a key prefix that no other test uses.
func RedisPrefix() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return "t:" + hex.EncodeToString(b[:]) + ":"
}

// RedisKey returns the key of an ID: the layout that the store documents.
func RedisKey(prefix string, id store.ID) string {
	rest := strings.TrimLeft(string(id[:]), "}")
	return prefix + string(id[:len(id)-len(rest)]) + "{" + rest + "}"
}
