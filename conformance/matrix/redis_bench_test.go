package matrix

import (
	"bytes"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/conformance/servers"
	reprise "github.com/reprise-go/reprise/core"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// BenchmarkRedis measures the store against its floor: a bare EVALSHA that does as much as a claim or a completion has to,
// on the same connection pool.
func BenchmarkRedis(b *testing.B) {
	client := redisClient(b, servers.Redis.Shared(b).Addr())
	store := redisStore(b, client, repriseredis.Config{Prefix: redisPrefix()})
	payload := bytes.Repeat([]byte("p"), 256)

	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r := redisClaim()
			if _, err := store.Claim(b.Context(), r); err != nil {
				b.Fatal(err)
			}
			if err := store.Complete(b.Context(), reprise.CompleteRequest{ID: r.ID, Owner: r.Owner, Payload: payload, Retention: time.Minute}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("replay", func(b *testing.B) {
		r := redisClaim()
		redisMustClaim(b, store, r, reprise.Claimed)
		redisWant(b, "complete", redisComplete(b, store, r, string(payload)), nil)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := store.Claim(b.Context(), r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("renew-64", func(b *testing.B) {
		var batch []reprise.RenewRequest
		for range 64 {
			r := redisClaim()
			redisMustClaim(b, store, r, reprise.Claimed)
			batch = append(batch, reprise.RenewRequest{ID: r.ID, Owner: r.Owner, Lease: r.Lease})
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := store.Renew(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
		}
	})

	prefix := redisPrefix()
	set := redis.NewScript(`return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 1`)
	get := redis.NewScript(`return redis.call('GET', KEYS[1])`)
	redisWant(b, "load", set.Load(b.Context(), client).Err(), nil)
	redisWant(b, "load", get.Load(b.Context(), client).Err(), nil)
	b.Run("floor/new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r := redisClaim()
			key := []string{redisKey(prefix, r.ID)}
			if err := set.EvalSha(b.Context(), client, key, payload[:69], 60_000).Err(); err != nil {
				b.Fatal(err)
			}
			if err := set.EvalSha(b.Context(), client, key, payload, 60_000).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor/replay", func(b *testing.B) {
		r := redisClaim()
		key := []string{redisKey(prefix, r.ID)}
		redisWant(b, "set", set.EvalSha(b.Context(), client, key, payload, 60_000).Err(), nil)
		b.ReportAllocs()
		for b.Loop() {
			key := []string{redisKey(prefix, r.ID)}
			if err := get.EvalSha(b.Context(), client, key).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
