package redis

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisFillRaw puts completed records under new keys, without a store, and returns their
// IDs.
func redisFillRaw(tb testing.TB, client redis.UniversalClient, prefix string, n int) []store.ID {
	tb.Helper()
	return redisPut(tb, client, prefix, redisHexOf(tb, redisGoldenCompleted), n)
}

// redisPut puts a record under new keys, and returns their IDs.
func redisPut(tb testing.TB, client redis.UniversalClient, prefix, record string, n int) []store.ID {
	tb.Helper()
	ids := make([]store.ID, n)
	for at := 0; at < n; at += 5000 {
		pipe := client.Pipeline()
		for i := at; i < min(n, at+5000); i++ {
			_, _ = rand.Read(ids[i][:]) // never fails: it ends the program instead
			pipe.Set(tb.Context(), labtest.RedisKey(prefix, ids[i]), record, time.Hour)
		}
		_, err := pipe.Exec(tb.Context())
		redisWant(tb, "fill", err, nil)
	}
	return ids
}

// redisPages returns all records that a query selects, and how many pages that took.
func redisPages(tb testing.TB, store *repriseredis.Store, q store.Query, each ...func(store.Page)) (records []store.Record, pages int) {
	tb.Helper()
	for {
		page, err := store.List(tb.Context(), q)
		redisWant(tb, "list", err, nil)
		if len(page.Records) > q.Limit {
			tb.Fatalf("%d records in a page of at most %d", len(page.Records), q.Limit)
		}
		if page.Scanned > 15_000 {
			tb.Fatalf("a page looked at %d records, want about 10,000 at most", page.Scanned)
		}
		for _, f := range each {
			f(page)
		}
		records = append(records, page.Records...)
		if pages++; page.Next == "" {
			return records, pages
		}
		q.After = page.Next
	}
}

// An operator finds the one operation that needs a person among many that do not.
func TestRedisTheLapsedOneIsFoundAmongMany(t *testing.T) {
	t.Parallel()
	labtest.Breadth(t, "tests with many records")
	const completed = 300_000
	client := labtest.RedisClient(t, servers.Redis.Start(t).Addr())
	st := labtest.RedisStore(t, client, repriseredis.Config{})
	redisFillRaw(t, client, labtest.ServicePrefix, completed)
	lapsed := redisGolden(t, client, labtest.ServicePrefix, redisGoldenClaimed, time.Minute)
	running := redisClaim()
	running.Lease, running.Label = time.Hour, "pay"
	redisMustClaim(t, st, running, store.Claimed)

	scanned := 0
	begun := time.Now()
	found, pages := redisPages(t, st, store.Query{States: store.States(store.StateLapsed), Limit: 100}, func(p store.Page) {
		scanned += p.Scanned
		if p.Next != "" && p.Total != completed+2 {
			t.Errorf("a page estimates %d records, want %d", p.Total, completed+2)
		}
	})
	t.Logf("%d pages in %v", pages, time.Since(begun))
	if len(found) != 1 || found[0].ID != lapsed.ID {
		t.Errorf("found %d records, want the lapsed one", len(found))
	}
	if scanned < completed+2 || scanned > completed*11/10 {
		t.Errorf("looked at %d records, want %d", scanned, completed+2)
	}
	if pages < 20 || pages > 40 {
		t.Errorf("%d pages, want about 30", pages)
	}
	q := store.Query{Label: "pay", States: store.States(store.StateRunning, store.StateUnreadable), Limit: 1}
	if found, _ := redisPages(t, st, q); len(found) != 1 || found[0].ID != running.ID {
		t.Errorf("%+v found %d records, want the running one", q, len(found))
	}
}

// Every record is listed, however small the pages are, and in a cluster too.
func TestRedisSmallPagesShowEverything(t *testing.T) {
	t.Parallel()
	server, cluster := servers.Redis.Start(t), servers.Redis.StartCluster(t)
	for name, client := range map[string]redis.UniversalClient{
		"single":  labtest.RedisClient(t, server.Addr()),
		"cluster": redisClusterClient(t, cluster),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := labtest.RedisPrefix()
			st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix})
			want := redisFillRaw(t, client, prefix, 3000)
			redisFillRaw(t, client, "others:", 3000)
			for _, limit := range []int{7, 499, 10_000} {
				records, pages := redisPages(t, st, store.Query{Limit: limit})
				seen := make(map[store.ID]bool)
				for _, r := range records {
					seen[r.ID] = true
					if r.Payload != nil || r.State != store.StateCompleted || r.Label != "pay" || r.Size != 3 {
						t.Fatalf("listed %+v", r)
					}
				}
				if len(seen) != len(want) || len(records) > len(want)*11/10 {
					t.Errorf("pages of %d show %d records, %d different ones, want %d", limit, len(records), len(seen), len(want))
				}
				t.Logf("%d pages of %d", pages, limit)
			}
		})
	}
}

// Records that come and go during the listing, and tables that grow and shrink, hide no
// record that stays.
func TestRedisAListingWhileRecordsComeAndGo(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Start(t).Addr())
	st := labtest.RedisStore(t, client, repriseredis.Config{})
	stays := redisFillRaw(t, client, labtest.ServicePrefix, 1000)
	var more []store.ID
	steps := 0
	records, _ := redisPages(t, st, store.Query{Limit: 50}, func(store.Page) {
		if steps++; steps%2 == 0 {
			for _, id := range more {
				redisWant(t, "delete", client.Del(t.Context(), labtest.RedisKey(labtest.ServicePrefix, id)).Err(), nil)
			}
			more = nil
		} else if steps < 20 {
			more = redisFillRaw(t, client, labtest.ServicePrefix, 300*steps)
		}
	})
	for _, id := range stays {
		if !slices.ContainsFunc(records, func(r store.Record) bool { return r.ID == id }) {
			t.Fatalf("a record that was there all the time is missing from %d listed ones", len(records))
		}
	}
}

// A replica that is promoted while a listing goes on has the same records in other
// places, so its listing starts again.
func TestRedisAListingSurvivesAFailover(t *testing.T) {
	t.Parallel()
	pair := servers.Redis.StartReplicated(t, 1)
	client := labtest.RedisClient(t, pair.Primary.Addr())
	want := redisFillRaw(t, client, labtest.ServicePrefix, 3000)
	st := labtest.RedisStore(t, client, repriseredis.Config{})
	page, err := st.List(t.Context(), store.Query{Limit: 1000})
	redisWant(t, "list", err, nil)

	promoted := labtest.RedisClient(t, pair.Replicas[0].Addr())
	labtest.Eventually(t, "the replica has everything", func() bool {
		n, err := promoted.DBSize(t.Context()).Result()
		return err == nil && n == int64(len(want))
	})
	redisAdmin(t, pair.Replicas[0], "REPLICAOF", "NO", "ONE")
	after := labtest.RedisStore(t, promoted, repriseredis.Config{})
	records, _ := redisPages(t, after, store.Query{Limit: 1000, After: page.Next})
	seen := make(map[store.ID]bool)
	for _, r := range records {
		seen[r.ID] = true
	}
	if len(seen) != len(want) {
		t.Errorf("after the failover %d records are listed, want all %d", len(seen), len(want))
	}
}

// redisHexOf returns the bytes of a golden record whose instants are now.
func redisHexOf(tb testing.TB, record string) string {
	tb.Helper()
	b := redisHex(tb, record)
	if strings.HasPrefix(record, "23") {
		fence := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMilli())*1000+999)
		copy(b[49:56], fence[1:])
	}
	return string(b)
}

// Unreadable records are listed, and forgotten as storetest says. Here is one that is
// unreadable on Redis only: an attempt whose key never expires. A completed one is
// readable.
func TestRedisUnreadableRecordsAreShownAndForgotten(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	prefix := labtest.RedisPrefix()
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix})
	persisted := func(record string) store.ClaimRequest {
		r := redisGolden(t, client, prefix, record, 0)
		redisWant(t, "persist", client.Persist(t.Context(), labtest.RedisKey(prefix, r.ID)).Err(), nil)
		return r
	}
	attempt, completed := persisted(redisGoldenClaimed), persisted(redisGoldenCompleted)
	found, _ := redisPages(t, st, store.Query{States: store.States(store.StateUnreadable), OlderThan: time.Hour, Limit: 10})
	if len(found) != 1 || found[0].ID != attempt.ID {
		t.Fatalf("the unreadable records are %+v, want the attempt", found)
	}
	_, err := st.Claim(t.Context(), attempt)
	redisWant(t, "claim", err, store.ErrCorrupt)
	forget := store.Resolution{State: store.StateUnreadable, Fence: found[0].Fence, Forget: true}
	redisWant(t, "forget", st.Resolve(t.Context(), attempt.ID, forget), nil)
	redisMustClaim(t, st, attempt, store.Claimed)
	if got := redisMustClaim(t, st, redisRival(completed), store.Completed); string(got.Payload) != "\x00\xffA" {
		t.Errorf("a completed record that persists replays %q", got.Payload)
	}
}
