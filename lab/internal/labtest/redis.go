package labtest

import (
	"crypto/rand"
	"encoding/hex"
	"testing"

	"github.com/redis/go-redis/v9"

	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// RedisClient returns a client of addr, closed when the test ends.
func RedisClient(tb testing.TB, addr string) *redis.Client {
	tb.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// RedisStore returns a store with a configuration that has to be good, closed when the
// test ends.
func RedisStore(tb testing.TB, client redis.UniversalClient, c repriseredis.Config) *repriseredis.Store {
	tb.Helper()
	store, err := repriseredis.New(client, c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

// RedisPrefix returns a key prefix that no other test uses.
func RedisPrefix() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return "t:" + hex.EncodeToString(b[:]) + ":"
}
