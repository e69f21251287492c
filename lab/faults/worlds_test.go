package faults_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// worlds are the deployments that a run breaks.
var worlds = []struct {
	name string
	make func(testing.TB, string) *world
}{
	{"redis", func(tb testing.TB, name string) *world { return redisSingle(tb, setting{name: name}) }},
	{"redis-at-most-once", func(tb testing.TB, name string) *world {
		return redisSingle(tb, setting{name: name, preset: atMostOnce})
	}},
	{"redis-pair-async", func(tb testing.TB, name string) *world { return redisPair(tb, name, 0) }},
	{"redis-pair-acked", func(tb testing.TB, name string) *world { return redisPair(tb, name, 1) }},
	{"redis-sentinel", redisSentinel},
	{"redis-cluster", redisCluster},
	{"postgres", func(tb testing.TB, name string) *world { return postgres(tb, "postgres", setting{name: name}) }},
	{"postgres-at-most-once", func(tb testing.TB, name string) *world {
		return postgres(tb, "postgres", setting{name: name, preset: atMostOnce})
	}},
	{"postgres-tx", func(tb testing.TB, name string) *world {
		return postgres(tb, "postgres-tx", setting{name: name, preset: transactional})
	}},
	{"postgres-tx-promotion", postgresPromotion},
}

// atOnce is how many worlds run at once, and share the time of a soak: with all of them
// on two cores, each call outlasts its attempt, and is repeated instead of answered.
const atOnce = 2

func TestGuaranteesHoldWhileEverythingBreaks(t *testing.T) {
	began, turns := time.Now(), make(chan struct{}, atOnce)
	seed := seed(t)
	t.Logf("REPRISE_SEED=%d", seed)
	var mu sync.Mutex
	var outcomes []*outcome
	t.Run("worlds", func(t *testing.T) {
		for _, w := range worlds {
			t.Run(w.name, func(t *testing.T) {
				t.Parallel()
				labtest.Breadth(t, "worlds of faults")
				turns <- struct{}{}
				defer func() { <-turns }()
				made := w.make(t, w.name)
				made.soak = made.soak * atOnce / time.Duration(len(worlds))
				o := made.run(t, seed)
				for i, v := range o.violations {
					if i < 10 {
						t.Error(v)
					}
				}
				if len(o.violations) > 0 {
					t.Errorf("%d violations; run again with REPRISE_SEED=%d", len(o.violations), seed)
				}
				mu.Lock()
				defer mu.Unlock()
				outcomes = append(outcomes, o)
			})
		}
	})
	if len(outcomes) < len(worlds) {
		return // -run named some, or they could not be made
	}
	demandFaults(t, outcomes)
	if *page != "" {
		writePage(t, outcomes, seed, began)
	}
}

// demandFaults fails a run in which too little happened to show anything.
func demandFaults(t *testing.T, outcomes []*outcome) {
	t.Helper()
	kills, links := 0, 0
	for _, o := range outcomes {
		for kind, n := range o.faults {
			switch {
			case strings.HasPrefix(kind, "process killed"):
				kills += n
			case strings.Contains(kind, " link: "):
				links += n
			}
		}
		for _, point := range points {
			if o.name == "postgres-tx" && o.faults["process killed "+point] == 0 {
				t.Errorf("%s: no process was killed %s", o.name, point)
			}
		}
		if o.replaces && o.promoted == 0 {
			t.Errorf("%s: no failover", o.name)
		}
		if o.operations < 50 || o.replays < 10 || o.takeovers == 0 && o.preset == recoverable {
			t.Errorf("%s: %d operations, %d replays and %d takeovers", o.name, o.operations, o.replays, o.takeovers)
		}
	}
	t.Logf("%d processes killed, %d faults of links", kills, links)
	if kills < 120 || links < 500 {
		t.Errorf("%d processes killed and %d faults of links, want 120 and 500 at least", kills, links)
	}
}

// redisSingle is a server whose acknowledged writes survive its crash.
func redisSingle(tb testing.TB, s setting) *world {
	tb.Helper()
	server := servers.Redis.Start(tb, "appendonly=yes", "appendfsync=always", "maxmemory-policy=noeviction")
	link := servers.StartProxy(tb, server.Addr())
	s.store = []string{"-redis-url", link.URL(server.URL())}
	w := redisWorld(tb, s)
	w.store = link
	w.lanes = []lane{processes(30), clientLinks(50), storeLink(40), redisServer(20, server)}
	return w
}

// redisWorld is servers over Redis whose handlers write into a database that does not
// break.
func redisWorld(tb testing.TB, s setting) *world {
	tb.Helper()
	effects := effectsServer(tb)
	s.db, s.store = at(effects.URL(), database(tb, effects)), append(s.store, "-store", "redis")
	w := newWorld(tb, s)
	w.witness = func() string { return s.db }
	return w
}

// redisPair is a primary and a replica, which takes over and becomes the primary, again
// and again.
func redisPair(tb testing.TB, name string, acked int) *world {
	tb.Helper()
	pair := servers.Redis.StartReplicated(tb, 1)
	link := servers.StartProxy(tb, pair.Primary.Addr())
	w := redisWorld(tb, setting{name: name, store: []string{"-redis-url", link.URL(pair.Primary.URL()), "-acked", strconv.Itoa(acked)}})
	w.store, w.lossy, w.replaces = link, acked == 0, true
	primary, replica, between := pair.Primary, pair.Replicas[0], pair.Links[0]
	failover := func(d *decision) {
		if d.kind%3 > 0 { // only the link between them
			between.Set(d, servers.Refuse)
			sleepFor(pick(d.a, 50*time.Millisecond, 300*time.Millisecond))
			between.Set(d, servers.Forward)
			d.count("Redis: replication cut", 1)
			return
		}
		(&servers.RedisReplicated{Primary: primary, Replicas: []*servers.RedisServer{replica}}).AwaitReplicas(d)
		between.Set(d, servers.Refuse) // the standby does not get the claims granted from now on
		sleepFor(pick(d.a, 20*time.Millisecond, 200*time.Millisecond))
		primary.Kill(d)
		d.must(replica, "REPLICAOF", "NO", "ONE")
		link.Retarget(replica.Addr())
		link.Reset()
		d.count("Redis: primary killed, replica promoted", 1)
		d.promotion()
		primary.Restart(d)
		primary, replica = replica, primary
		between.Retarget(primary.Addr())
		between.Set(d, servers.Forward)
		host, port, _ := strings.Cut(between.Addr(), ":")
		d.must(replica, "REPLICAOF", host, port)
	}
	w.lanes = []lane{processes(24), clientLinks(40), storeLink(30), {"failover", 9, failover}}
	return w
}

// redisSentinel is a primary with two replicas and three sentinels.
func redisSentinel(tb testing.TB, name string) *world {
	tb.Helper()
	set := servers.Redis.StartSentinel(tb)
	addrs := set.SentinelAddrs()
	w := redisWorld(tb, setting{name: name, store: []string{
		"-acked", "2", "-redis-url", fmt.Sprintf("redis://%s?master_name=%s&addr=%s&addr=%s", addrs[0], set.MasterName, addrs[1], addrs[2]),
	}})
	w.replaces = true
	steps := 0
	failover := func(d *decision) {
		old := set.Primary(d)
		if steps++; steps%4 != 2 {
			d.disconnect(old)
			d.gap = 500 * time.Millisecond
			return
		}
		old.Kill(d)
		set.AwaitFailover(d, old)
		d.count("Redis: primary killed, replica promoted", 1)
		d.promotion()
		old.Restart(d) // the sentinels make it a replica
		d.gap = 12 * time.Second
	}
	w.lanes = []lane{processes(18), clientLinks(30), {"failover", 4, failover}}
	return w
}

// redisCluster is three primaries with a replica each.
func redisCluster(tb testing.TB, name string) *world {
	tb.Helper()
	cluster := servers.Redis.StartCluster(tb)
	addrs := cluster.Addrs()
	w := redisWorld(tb, setting{name: name, store: []string{
		"-acked", "1", "-redis-url", fmt.Sprintf("redis://%s?addr=%s&addr=%s", addrs[0], addrs[1], addrs[2]),
	}})
	w.replaces = true
	steps := 0
	failover := func(d *decision) {
		steps++
		key := fmt.Sprintf("any-%d", d.a)
		old := cluster.Primary(d, key)
		switch steps % 8 {
		case 3:
			old.Kill(d)
			cluster.AwaitFailover(d, key, old)
			d.count("Redis: primary killed, replica promoted", 1)
			d.promotion()
			old.Restart(d) // the others make it a replica
			d.gap = 5 * time.Second
		case 1, 2, 5, 6:
			moveSlot(d, cluster, key)
		default:
			d.disconnect(old)
			d.gap = 200 * time.Millisecond
		}
	}
	w.lanes = []lane{processes(18), clientLinks(30), {"failover", 6, failover}}
	return w
}

// moveSlot moves the slot of a key to another primary, key by key.
func moveSlot(d *decision, cluster *servers.RedisCluster, key string) {
	from := cluster.Primary(d, key)
	to := from
	for i := 0; to == from; i++ {
		to = cluster.Primary(d, fmt.Sprintf("%s-%d", key, i))
	}
	number, err := from.Do(d.Context(), "CLUSTER", "KEYSLOT", key)
	if err != nil {
		return
	}
	slot := fmt.Sprint(number)
	ids := make(map[*servers.RedisServer]string)
	for _, s := range []*servers.RedisServer{from, to} {
		id, err := s.Do(d.Context(), "CLUSTER", "MYID")
		if err != nil {
			return
		}
		ids[s] = fmt.Sprint(id)
	}
	d.must(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[from])
	d.must(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[to])
	host, port, _ := strings.Cut(to.Addr(), ":")
	for range 20 {
		reply, err := from.Do(d.Context(), "CLUSTER", "GETKEYSINSLOT", slot, "100")
		keys, _ := reply.([]any)
		if err == nil && len(keys) == 0 {
			break
		}
		for _, k := range keys {
			d.do(from, "MIGRATE", host, port, fmt.Sprint(k), "0", "5000")
		}
	}
	d.must(to, "CLUSTER", "SETSLOT", slot, "NODE", ids[to])
	d.must(from, "CLUSTER", "SETSLOT", slot, "NODE", ids[to])
	d.count("Redis: slot moved", 1)
}

// postgres is one server of PostgreSQL.
func postgres(tb testing.TB, store string, s setting) *world {
	tb.Helper()
	server := servers.StartPostgres(tb, "max_connections=80")
	link := servers.StartProxy(tb, server.Addr())
	db := database(tb, server)
	s.db, s.store = at(link.URL(server.URL()), db), []string{"-store", store}
	w := newWorld(tb, s)
	w.store, w.witness = link, func() string { return at(server.URL(), db) }
	w.lanes = []lane{processes(30), clientLinks(50), storeLink(40), postgresServer(40, server)}
	return w
}

// postgresPromotion is a primary that waits for its standby, which takes over; and the
// new primary gets a standby in its turn.
func postgresPromotion(tb testing.TB, name string) *world {
	tb.Helper()
	primary := servers.StartPostgres(tb, "max_connections=80")
	link := servers.StartProxy(tb, primary.Addr())
	db := database(tb, primary)
	standby := primary.StartStandby(tb, "max_connections=80")
	primary.Set(tb, "synchronous_standby_names=*")
	standby.AwaitSynchronous(tb)
	w := newWorld(tb, setting{name: name, preset: transactional, db: at(link.URL(primary.URL()), db), store: []string{"-store", "postgres-tx"}})
	w.store, w.witness, w.replaces = link, func() string { return at(primary.URL(), db) }, true
	steps := 0
	promote := func(d *decision) {
		if steps++; steps%8 != 3 {
			found, err := primary.Exec(d.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+db+"' AND pid <> pg_backend_pid()")
			if err == nil {
				d.count("PostgreSQL: all backends terminated", len(found))
			}
			d.gap = 300 * time.Millisecond
			return
		}
		old := primary
		standby.Link.Set(d, servers.Refuse)
		sleepFor(pick(d.a, 10*time.Millisecond, 200*time.Millisecond))
		old.Kill(d)
		standby.Promote(d)
		link.Retarget(standby.Addr())
		link.Reset()
		d.count("PostgreSQL: primary killed, standby promoted", 1)
		d.promotion()
		primary = standby.PostgresServer
		standby = primary.StartStandby(tb, "max_connections=80")
		primary.Set(d, "synchronous_standby_names=*")
		standby.AwaitSynchronous(d)
		d.gap = 10 * time.Second
	}
	w.lanes = []lane{processes(18), clientLinks(30), storeLink(30), {"promotion", 8, promote}}
	return w
}

// effectsServer is where handlers write where the store has no database. It does not
// break.
func effectsServer(tb testing.TB) *servers.PostgresServer {
	tb.Helper()
	if os.Getenv("REPRISE_TEST_POSTGRES_URL") != "" {
		return servers.StartPostgres(tb) // the superuser of an external server is unknown
	}
	return servers.SharedPostgres(tb)
}
