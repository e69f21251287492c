package redis

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

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

// redisPages returns all records that a query selects, and how many pages that took.
func redisPages(tb testing.TB, store *repriseredis.Store, q store.Query, each ...func(store.Page)) (records []store.Record, pages int) {
	tb.Helper()
	for {
		page, err := store.List(tb.Context(), q)
		labtest.Want(tb, "list", err, nil)
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
	redisPut(t, client, labtest.ServicePrefix, string(redisHex(t, redisGoldenCompleted)), completed)
	lapsed := redisGolden(t, client, labtest.ServicePrefix, redisGoldenClaimed, time.Minute)
	running := labtest.NewClaim()
	running.Lease, running.Label = time.Hour, "pay"
	labtest.WantClaim(t, st, running, store.Claimed)

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
		labtest.Want(t, "persist", client.Persist(t.Context(), labtest.RedisKey(prefix, r.ID)).Err(), nil)
		return r
	}
	attempt, completed := persisted(redisGoldenClaimed), persisted(redisGoldenCompleted)
	found, _ := redisPages(t, st, store.Query{States: store.States(store.StateUnreadable), OlderThan: time.Hour, Limit: 10})
	if len(found) != 1 || found[0].ID != attempt.ID {
		t.Fatalf("the unreadable records are %+v, want the attempt", found)
	}
	_, err := st.Claim(t.Context(), attempt)
	labtest.Want(t, "claim", err, store.ErrCorrupt)
	forget := store.Resolution{State: store.StateUnreadable, Fence: found[0].Fence, Forget: true}
	labtest.Want(t, "forget", st.Resolve(t.Context(), attempt.ID, forget), nil)
	labtest.WantClaim(t, st, attempt, store.Claimed)
	if got := labtest.WantClaim(t, st, labtest.Rival(completed), store.Completed); string(got.Payload) != "\x00\xffA" {
		t.Errorf("a completed record that persists replays %q", got.Payload)
	}
}
