package redis

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// A new key costs a claim of two commands and a completion of one script, a replay the
// two commands of a claim; and a replay writes no data.
func TestRedisCommandsOfARequest(t *testing.T) {
	t.Parallel()
	const requests = 50
	client := labtest.RedisClient(t, servers.Redis.Start(t).Addr())
	for _, config := range []repriseredis.Config{{}, {NoCombining: true}} {
		st := labtest.RedisStore(t, client, config)
		warm := labtest.NewClaim() // the first of each script is sent by its source
		granted := labtest.WantClaim(t, st, warm, store.Claimed)
		labtest.Want(t, "complete", st.Complete(t.Context(), redisCompletion(warm, granted, "answer")), nil)
		warm.Waiting = true // by the script
		labtest.WantClaim(t, st, warm, store.Completed)

		start, written := redisCalls(t, client), redisWritten(t, client)
		var claims []store.ClaimRequest
		for range requests {
			r := labtest.NewClaim()
			granted := labtest.WantClaim(t, st, r, store.Claimed)
			labtest.Want(t, "complete", st.Complete(t.Context(), redisCompletion(r, granted, "answer")), nil)
			claims = append(claims, r)
		}
		fresh := redisCalls(t, client)
		if n := redisWritten(t, client) - written; n != 2*requests {
			t.Errorf("%d new keys changed the data %d times, want two each", requests, n)
		}
		written = redisWritten(t, client)
		for _, r := range claims {
			r.Owner = store.NewOwner()
			labtest.WantClaim(t, st, r, store.Completed)
		}
		replayed := redisCalls(t, client)

		// The completion gets and sets within its script.
		redisExpectCalls(t, "new keys", start, fresh, map[string]int{"set": 2 * requests, "pexpiretime": requests, "evalsha": requests, "get": requests})
		redisExpectCalls(t, "replays", fresh, replayed, map[string]int{"set": requests, "pexpiretime": requests})
		if n := redisWritten(t, client) - written; n != 0 {
			t.Errorf("%d replays changed the data %d times", requests, n)
		}

		// With a horizon a completion sets the payload, too, and a replay adds a script that
		// reads both keys.
		r := labtest.NewClaim()
		r.Horizon = time.Hour
		granted = labtest.WantClaim(t, st, r, store.Claimed)
		start = redisCalls(t, client)
		labtest.Want(t, "complete", st.Complete(t.Context(), redisCompletion(r, granted, "answer")), nil)
		completed := redisCalls(t, client)
		redisExpectCalls(t, "a completion with a horizon", start, completed, map[string]int{"evalsha": 1, "get": 1, "set": 2})
		labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
		redisExpectCalls(t, "a replay with a horizon", completed, redisCalls(t, client),
			map[string]int{"set": 1, "pexpiretime": 2, "evalsha": 1, "get": 2, "time": 1})
	}
}

// redisWritten returns how often the data of the server changed since its last save,
// which a test switches off.
func redisWritten(tb testing.TB, client *redis.Client) int {
	tb.Helper()
	return redisInfo(tb, client, "Persistence", "rdb_changes_since_last_save")
}

// redisExpectCalls demands exactly these calls between two counts, besides the counting.
func redisExpectCalls(t *testing.T, what string, before, after, want map[string]int) {
	t.Helper()
	for name := range after {
		if name == "info" || name == "hello" || name == "ping" || strings.HasPrefix(name, "client") {
			continue // a connection that is made at the same time greets the server
		}
		if n := after[name] - before[name]; n != want[name] {
			t.Errorf("%s: %d calls of %s, want %d", what, n, name, want[name])
		}
	}
}

// A completed key with a body of 256 bytes takes at most 550 bytes of the server's
// memory, with all that the server needs for it, and the last of a million as much as the
// first of ten thousand.
func TestRedisMemoryOfACompletedKey(t *testing.T) {
	t.Parallel()
	labtest.Breadth(t, "tests with many records")
	const (
		most    = 550
		payload = 256 + 51 // the body, its content type and the protocol's overhead
		step    = 10_000   // half-empty hash tables: the most that a key takes
	)
	client := labtest.RedisClient(t, servers.Redis.Start(t).Addr())
	st := labtest.RedisStore(t, client, repriseredis.Config{})
	r := labtest.NewClaim()
	granted := labtest.WantClaim(t, st, r, store.Claimed)
	labtest.Want(t, "complete", st.Complete(t.Context(), redisCompletion(r, granted, strings.Repeat("p", payload))), nil)
	record, err := client.Get(t.Context(), labtest.RedisKey(labtest.ServicePrefix, r.ID)).Result()
	labtest.Want(t, "get", err, nil)
	empty := redisUsedMemory(t, client)
	measure := func(keys int) {
		t.Helper()
		var each int
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { //nolint:forbidigo // the server frees the tables that it grew out of in the background
			if each = (redisUsedMemory(t, client) - empty) / keys; each <= most || time.Now().After(deadline) {
				break
			}
		}
		t.Logf("%d keys with a payload of %d bytes: %d bytes each", keys, payload, each)
		if each > most {
			t.Errorf("%d keys take %d bytes each, want at most %d", keys, each, most)
		}
	}
	keys := 0 // written as the store writes them
	for _, more := range []int{step, 2 * step, 100_000, 1_000_000} {
		redisPut(t, client, labtest.ServicePrefix, record, more-keys)
		keys = more
		measure(keys)
	}
}

// redisPut puts a record under new keys, without a store.
func redisPut(tb testing.TB, client redis.UniversalClient, prefix, record string, n int) {
	tb.Helper()
	var id store.ID
	for at := 0; at < n; at += 5000 {
		pipe := client.Pipeline()
		for range min(n-at, 5000) {
			_, _ = rand.Read(id[:]) // never fails: it ends the program instead
			pipe.Set(tb.Context(), labtest.RedisKey(prefix, id), record, time.Hour)
		}
		_, err := pipe.Exec(tb.Context())
		labtest.Want(tb, "fill", err, nil)
	}
}
