package redis

import (
	"bytes"
	"context"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// The store allocates no more than bare scripts, plus go-redis's allocations for a
// pipeline, since a claim is one. The test is not parallel, as allocations of all
// goroutines count.
func TestRedisAllocatesLittleMoreThanBareScripts(t *testing.T) {
	const runs = 200
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: labtest.RedisPrefix()})
	floor := newRedisFloor(t, client)
	ctx := context.WithoutCancel(t.Context())

	newKey := func() {
		r := labtest.NewClaim()
		granted, err := st.Claim(ctx, r)
		labtest.Want(t, "claim", err, nil)
		labtest.Want(t, "complete", st.Complete(ctx, store.CompleteRequest{
			ID: r.ID, Owner: r.Owner, Payload: floor.payload, Policy: store.Policy{Retention: r.Retention},
			Fingerprint: r.Fingerprint, Attempt: granted.Attempt, Fence: granted.Fence,
		}), nil)
	}
	done := labtest.Claimed(t, st)
	labtest.Want(t, "complete", redisComplete(t, st, done, string(floor.payload)), nil)
	replay := func() {
		_, err := st.Claim(ctx, done)
		labtest.Want(t, "replay", err, nil)
	}

	for _, c := range []struct {
		name  string
		store func()
		floor func(testing.TB)
		more  float64
	}{{"a new key", newKey, floor.newKey, 1}, {"a replay", replay, floor.replay, 5}} {
		got := testing.AllocsPerRun(runs, c.store)
		least := testing.AllocsPerRun(runs, func() { c.floor(t) })
		t.Logf("%s: %v allocations, bare scripts %v", c.name, got, least)
		if got > least+c.more {
			t.Errorf("%s allocates %v times, bare scripts %v, and a pipeline %v more", c.name, got, least, c.more)
		}
	}
}

// redisFloor does the minimal work of a store, over bare scripts.
type redisFloor struct {
	client   *redis.Client
	prefix   string
	set, get *redis.Script
	payload  []byte
	written  string // the key of something to replay
}

func newRedisFloor(tb testing.TB, client *redis.Client) *redisFloor {
	tb.Helper()
	f := &redisFloor{
		client:  client,
		prefix:  labtest.RedisPrefix(),
		set:     redis.NewScript(`return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 1`),
		get:     redis.NewScript(`return redis.call('GET', KEYS[1])`),
		payload: bytes.Repeat([]byte("p"), 256),
	}
	ctx := context.WithoutCancel(tb.Context())
	labtest.Want(tb, "load", f.set.Load(ctx, client).Err(), nil)
	labtest.Want(tb, "load", f.get.Load(ctx, client).Err(), nil)
	f.written = labtest.RedisKey(f.prefix, labtest.NewClaim().ID)
	labtest.Want(tb, "write", f.set.EvalSha(ctx, client, []string{f.written}, f.payload, 60_000).Err(), nil)
	return f
}

func (f *redisFloor) newKey(tb testing.TB) {
	tb.Helper()
	key := []string{labtest.RedisKey(f.prefix, labtest.NewClaim().ID)}
	labtest.Want(tb, "write", f.set.EvalSha(tb.Context(), f.client, key, f.payload[:69], 60_000).Err(), nil)
	labtest.Want(tb, "write", f.set.EvalSha(tb.Context(), f.client, key, f.payload, 60_000).Err(), nil)
}

func (f *redisFloor) replay(tb testing.TB) {
	tb.Helper()
	labtest.Want(tb, "read", f.get.EvalSha(tb.Context(), f.client, []string{f.written}).Err(), nil)
}
