package redis

import (
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// A client that caches reads in its process answers with the record that was there: a
// store that read through it would find an attempt in progress that is completed, or
// none. The client here learns for a minute of no change.
func TestRedisAStoreDoesNotReadTheCacheOfItsClient(t *testing.T) {
	t.Parallel()
	addr, config := servers.Redis.Shared(t).Addr(), repriseredis.Config{Prefix: labtest.RedisPrefix()}
	client := redisCaching(t, addr)
	st := labtest.RedisStore(t, client, config)
	r := labtest.Claimed(t, st)
	read := func() string {
		t.Helper()
		s, err := client.Get(t.Context(), labtest.RedisKey(config.Prefix, r.ID)).Result()
		labtest.Want(t, "get", err, nil)
		return s
	}
	claimed := read()
	other := labtest.RedisStore(t, labtest.RedisClient(t, addr), config)
	labtest.Want(t, "complete elsewhere", redisComplete(t, other, r, "answer"), nil)
	if read() != claimed {
		t.Fatal("the client caches nothing, so this shows nothing")
	}
	if got := labtest.WantClaim(t, st, labtest.Rival(r), store.Completed); string(got.Payload) != "answer" {
		t.Errorf("the payload is %q", got.Payload)
	}
	shown, err := st.Inspect(t.Context(), r.ID)
	if err != nil || shown.State != store.StateCompleted {
		t.Errorf("Inspect: %v, %v; want a completed operation", shown.State, err)
	}
}

// redisCaching returns a client with a cache whose entries stay for a minute after they
// changed, closed when the test ends. It skips the test on releases of go-redis without
// client-side caching; those of "make newest" have it.
func redisCaching(t *testing.T, addr string) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: addr, ContextTimeoutEnabled: true}
	options := reflect.ValueOf(o).Elem()
	cache := options.FieldByName("ClientSideCacheConfig")
	if !cache.IsValid() {
		if os.Getenv("REPRISE_NEWEST") != "" {
			t.Fatal("the newest go-redis has no client-side caching, or under another name")
		}
		t.Skip("left to make newest: this go-redis has no client-side caching")
	}
	cache.Set(reflect.New(cache.Type().Elem()))
	options.FieldByName("ClientSideCacheInvalidationBatchWindow").SetInt(int64(time.Minute))
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
