package redis

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
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

// An unreadable record is listed, and can be forgotten while it is unreadable; no other
// record can be forgotten that way.
func TestRedisUnreadableRecordsAreShownAndForgotten(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	prefix := labtest.RedisPrefix()
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix})
	later := redisGolden(t, client, prefix, redisGoldenOtherVersion, 0)
	list := redisClaim()
	redisWant(t, "put a list", client.RPush(t.Context(), labtest.RedisKey(prefix, list.ID), "x").Err(), nil)
	persisted := redisGolden(t, client, prefix, redisGoldenClaimed, 0)
	redisWant(t, "persist", client.Persist(t.Context(), labtest.RedisKey(prefix, persisted.ID)).Err(), nil)
	lasting := redisGolden(t, client, prefix, redisGoldenCompleted, 0)
	redisWant(t, "persist", client.Persist(t.Context(), labtest.RedisKey(prefix, lasting.ID)).Err(), nil)
	sound := redisGolden(t, client, prefix, redisGoldenCompleted, 0)
	lapsed := redisGolden(t, client, prefix, redisGoldenClaimed, time.Minute)

	found, _ := redisPages(t, st, store.Query{States: store.States(store.StateUnreadable), OlderThan: time.Hour, Limit: 10})
	if len(found) != 3 {
		t.Errorf("%d unreadable records are shown, want 3", len(found))
	}
	forget := store.Resolution{State: store.StateUnreadable, Forget: true}
	for _, r := range []store.ClaimRequest{sound, lapsed, lasting} {
		shown, err := st.Inspect(t.Context(), r.ID)
		redisWant(t, "inspect", err, nil)
		forget.Fence = shown.Fence
		redisWant(t, "forget a readable one as unreadable", st.Resolve(t.Context(), r.ID, forget), store.ErrRecordChanged)
	}
	for _, r := range []store.ClaimRequest{later, list, persisted} {
		shown, err := st.Inspect(t.Context(), r.ID)
		if err != nil || shown.State != store.StateUnreadable {
			t.Errorf("inspect shows %+v, %v", shown, err)
		}
		_, err = st.Claim(t.Context(), r)
		redisWant(t, "claim", err, store.ErrCorrupt)
		redisWant(t, "forget with another fence", st.Resolve(t.Context(), r.ID, store.Resolution{State: store.StateUnreadable, Fence: shown.Fence + 1, Forget: true}), store.ErrRecordChanged)
		redisWant(t, "answer", st.Resolve(t.Context(), r.ID, store.Resolution{Fence: shown.Fence, Payload: []byte("x"), Retention: time.Hour}), store.ErrRecordChanged)
		forget.Fence = shown.Fence
		redisWant(t, "forget", st.Resolve(t.Context(), r.ID, forget), nil)
		redisWant(t, "forget again", st.Resolve(t.Context(), r.ID, forget), store.ErrRecordChanged)
		redisMustClaim(t, st, r, store.Claimed)
	}
	if got := redisMustClaim(t, st, lasting, store.Completed); string(got.Payload) != "\x00\xffA" {
		t.Errorf("a completed record that persists replays %q", got.Payload)
	}
}

// A cursor is of one server's data. It survives neither a server that lost them nor one
// that never had them, and the listing of a server that has them but started again shows
// everything.
func TestRedisACursorKnowsItsServer(t *testing.T) {
	t.Parallel()
	one := servers.Redis.Start(t, "appendonly=no")
	client := labtest.RedisClient(t, one.Addr())
	st := labtest.RedisStore(t, client, repriseredis.Config{})
	redisFillRaw(t, client, labtest.ServicePrefix, 2000)
	page, err := st.List(t.Context(), store.Query{Limit: 100})
	redisWant(t, "list", err, nil)

	other := labtest.RedisClient(t, servers.Redis.Start(t).Addr())
	redisFillRaw(t, other, labtest.ServicePrefix, 2000)
	_, err = labtest.RedisStore(t, other, repriseredis.Config{}).List(t.Context(), store.Query{Limit: 100, After: page.Next})
	redisWant(t, "go on at another server", err, store.ErrInvalid)
	_, err = labtest.RedisStore(t, client, repriseredis.Config{Prefix: "other:"}).List(t.Context(), store.Query{Limit: 100, After: page.Next})
	redisWant(t, "go on with another prefix", err, store.ErrInvalid)
	_, err = st.List(t.Context(), store.Query{Limit: 100, After: page.Next[:len(page.Next)-8]})
	redisWant(t, "go on with half a cursor", err, store.ErrInvalid)
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
	redisEventually(t, "the replica has everything", func() bool {
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

// A record that moves to a node that was listed already is not missed: when the shape of
// the cluster has changed, the listing starts again.
func TestRedisAListingFollowsAMovedSlot(t *testing.T) {
	t.Parallel()
	cluster := servers.Redis.StartCluster(t)
	for name, limit := range map[string]int{"between pages": 100, "within a page": 10_000} {
		t.Run(name, func(t *testing.T) { redisMoveWhileListing(t, cluster, limit) }) // one after the other
	}
}

// redisMoveWhileListing moves a record from the last node of a listing to the first one
// when the first one has been scanned.
func redisMoveWhileListing(t *testing.T, cluster *servers.RedisCluster, limit int) {
	t.Helper()
	prefix := labtest.RedisPrefix()
	scans := &redisScans{}
	client := labtest.RedisCluster(t, &redis.ClusterOptions{
		Addrs: cluster.Addrs(),
		NewClient: func(o *redis.Options) *redis.Client {
			node := redis.NewClient(o)
			node.AddHook(redisScansOf{scans, o.Addr})
			return node
		},
	})
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix})
	want := redisFillRaw(t, client, prefix, 3000)

	at := func(id store.ID) *servers.RedisServer { return cluster.Primary(t, labtest.RedisKey(prefix, id)) }
	primaries := make(map[string]*servers.RedisServer)
	for _, id := range want[:100] {
		node := at(id)
		primaries[node.Addr()] = node
	}
	order := slices.Sorted(maps.Keys(primaries))
	if len(order) != 3 {
		t.Fatalf("100 keys are at %v, want three nodes", order)
	}
	first, last := primaries[order[0]], primaries[order[2]]
	moving := want[slices.IndexFunc(want, func(id store.ID) bool { return at(id) == last })]
	slot := redisSlot(labtest.RedisKey(prefix, moving))
	scans.on(order[1], func() {
		redisDo(t, first, "CLUSTER", "SETSLOT", slot, "IMPORTING", redisNodeID(t, last))
		redisDo(t, last, "CLUSTER", "SETSLOT", slot, "MIGRATING", redisNodeID(t, first))
		host, port, err := net.SplitHostPort(first.Addr())
		redisWant(t, "address", err, nil)
		keys, _ := redisDo(t, last, "CLUSTER", "GETKEYSINSLOT", slot, "1000").([]any)
		for _, key := range keys {
			redisDo(t, last, "MIGRATE", host, port, key.(string), "0", "5000")
		}
		for _, node := range []*servers.RedisServer{first, last, primaries[order[1]]} {
			redisDo(t, node, "CLUSTER", "SETSLOT", slot, "NODE", redisNodeID(t, first))
		}
	})

	shown := make(map[store.ID]bool)
	records, _ := redisPages(t, st, store.Query{Limit: limit})
	for _, r := range records {
		shown[r.ID] = true
	}
	if !scans.done() {
		t.Error("no slot was moved")
	}
	if !shown[moving] || len(shown) != len(want) {
		t.Errorf("%d records are listed, want %d; the one that moved: %v", len(shown), len(want), shown[moving])
	}
}

// redisScans calls a function before the first SCAN of a node.
type redisScans struct {
	mu   sync.Mutex
	addr string
	f    func()
}

func (s *redisScans) on(addr string, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addr, s.f = addr, f
}

func (s *redisScans) done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.f == nil
}

// redisScansOf is the hook of the client of one node.
type redisScansOf struct {
	*redisScans
	addr string
}

func (h redisScansOf) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h redisScansOf) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		if c.Name() == "scan" {
			h.mu.Lock()
			f := h.f
			if h.addr != h.redisScans.addr {
				f = nil
			}
			if f != nil {
				h.f = nil
			}
			h.mu.Unlock()
			if f != nil {
				f()
			}
		}
		return next(ctx, c)
	}
}

func (h redisScansOf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A listing whose server goes away says so, and can go on when it is back.
func TestRedisAListingWithoutItsServer(t *testing.T) {
	t.Parallel()
	server := servers.Redis.Start(t)
	proxy := servers.StartProxy(t, server.Addr())
	direct := labtest.RedisClient(t, server.Addr())
	redisFillRaw(t, direct, labtest.ServicePrefix, 1000)
	st := labtest.RedisStore(t, labtest.RedisClient(t, proxy.Addr()), repriseredis.Config{})
	page, err := st.List(t.Context(), store.Query{Limit: 100})
	redisWant(t, "list", err, nil)
	server.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := st.List(ctx, store.Query{Limit: 100, After: page.Next}); !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("list of a server that hangs: %v", err)
	}
	server.Resume(t)
	rest, _ := redisPages(t, st, store.Query{Limit: 100, After: page.Next})
	if len(rest)+len(page.Records) < 1000 {
		t.Errorf("%d records in all, want 1000", len(rest)+len(page.Records))
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
