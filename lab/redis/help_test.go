package redis

import (
	"context"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// redisClusterClient returns a client of a cluster, closed when the test ends.
func redisClusterClient(tb testing.TB, cluster *servers.RedisCluster) *redis.ClusterClient {
	tb.Helper()
	return labtest.RedisCluster(tb, &redis.ClusterOptions{Addrs: cluster.Addrs()})
}

// redisOnePool gives a client one pool, in its options: newer releases of go-redis, which
// have the field, have another one for pipelines.
func redisOnePool(o *redis.Options) *redis.Options {
	if size := reflect.ValueOf(o).Elem().FieldByName("PipelinePoolSize"); size.IsValid() {
		size.SetInt(-1)
	}
	return o
}

// forEachFlavor runs f on Redis and on Valkey, each skipped where it is missing.
func forEachFlavor(t *testing.T, f func(t *testing.T, flavor *servers.Flavor)) {
	t.Helper()
	for _, flavor := range []*servers.Flavor{servers.Redis, servers.Valkey} {
		t.Run(flavor.String(), func(t *testing.T) {
			t.Parallel()
			if flavor == servers.Valkey {
				labtest.Breadth(t, "tests on Valkey")
			}
			f(t, flavor)
		})
	}
}

// redisPayloadKey returns the key of a payload that its record outlives.
func redisPayloadKey(prefix string, id store.ID) string { return labtest.RedisKey(prefix, id) + "p" }

// redisWaits claims as a caller that waits for the attempt in progress.
func redisWaits(tb testing.TB, st store.Store, r store.ClaimRequest) {
	tb.Helper()
	r.Owner, r.Waiting = store.NewOwner(), true
	labtest.WantClaim(tb, st, r, store.InProgress)
}

// redisCompletion returns the completion of an engine whose claim r was granted.
func redisCompletion(r store.ClaimRequest, granted store.ClaimResult, payload string) store.CompleteRequest {
	return store.CompleteRequest{
		ID: r.ID, Owner: r.Owner, Payload: []byte(payload), Policy: r.Policy,
		Fingerprint: r.Fingerprint, Description: r.Description, Attempt: granted.Attempt, Fence: granted.Fence,
	}
}

// redisComplete completes the claim r with its retention, and does not know its label.
func redisComplete(tb testing.TB, st store.Store, r store.ClaimRequest, payload string) error {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second) // a test tries again
	defer cancel()
	r.Label, r.AtMostOnce = "", false
	return st.Complete(ctx, labtest.Completion(r, payload))
}

// redisCalls returns how often the server ran each command, those inside of scripts too.
func redisCalls(tb testing.TB, client *redis.Client) map[string]int {
	tb.Helper()
	info, err := client.InfoMap(tb.Context(), "commandstats").Result()
	labtest.Want(tb, "info", err, nil)
	calls := make(map[string]int)
	for name, counts := range info["Commandstats"] {
		digits, _, _ := strings.Cut(strings.TrimPrefix(counts, "calls="), ",")
		calls[strings.TrimPrefix(name, "cmdstat_")], err = strconv.Atoi(digits)
		labtest.Want(tb, "read a count", err, nil)
	}
	return calls
}

// redisInfo returns a number that INFO shows.
func redisInfo(tb testing.TB, client *redis.Client, section, item string) int {
	tb.Helper()
	n, err := strconv.Atoi(client.InfoMap(tb.Context(), section).Item(section, item))
	labtest.Want(tb, "read "+item, err, nil)
	return n
}

// redisUsedMemory returns the memory that the server allocated, except for its
// connections, in bytes.
func redisUsedMemory(tb testing.TB, client *redis.Client) int {
	tb.Helper()
	return redisInfo(tb, client, "Memory", "used_memory") - redisInfo(tb, client, "Memory", "mem_clients_normal")
}

func TestMain(m *testing.M) { labtest.Main(m) }
