package lincheck

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// What a history has to meet, so that it shows something.
var (
	everything = []string{
		"claimed", "takeover", "in-progress", "completed", "mismatch", "renewal renewed", "renewal lost", "renewal completed",
		"complete", "refused completion", "release", "unknown claim", "unknown complete",
	}
	everythingAtomic = []string{"claimed", "in-progress", "completed", "mismatch", "complete", "release", "unknown claim", "unknown complete"}
)

func TestMemoryIsLinearizable(t *testing.T) {
	t.Parallel()
	checked(t, &deployment{stores: []reprise.Store{memstore.New()}}, everything...)
}

// Redis counts in milliseconds, and reads its clock when it begins to serve a connection.
const redisPrecision = 2 * time.Millisecond

func redisDeployment(tb testing.TB, c repriseredis.Config, connect func() redis.UniversalClient) *deployment {
	tb.Helper()
	c.Prefix = labtest.RedisPrefix()
	return &deployment{
		stores:    []reprise.Store{labtest.RedisStore(tb, connect(), c), labtest.RedisStore(tb, connect(), c)},
		precision: redisPrecision, patience: time.Second,
	}
}

func TestRedisIsLinearizable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]repriseredis.Config{
		"combined": {}, "one by one": {NoCombining: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servers.Redis.Shared(t)
			checked(t, redisDeployment(t, c, func() redis.UniversalClient { return labtest.RedisClient(t, server.Addr()) }), everything...)
		})
	}
	t.Run("acked", func(t *testing.T) {
		t.Parallel()
		pair := servers.Redis.StartReplicated(t, 1)
		c := repriseredis.Config{Durability: repriseredis.Acked(1)}
		d := redisDeployment(t, c, func() redis.UniversalClient { return labtest.RedisClient(t, pair.Primary.Addr()) })
		d.repeats = true
		checked(t, d, everything...)
	})
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		watched := servers.Redis.StartSentinel(t)
		checked(t, redisDeployment(t, repriseredis.Config{}, func() redis.UniversalClient {
			client := redis.NewFailoverClient(&redis.FailoverOptions{
				MasterName: watched.MasterName, SentinelAddrs: watched.SentinelAddrs(), ContextTimeoutEnabled: true,
			})
			t.Cleanup(func() { _ = client.Close() })
			return client
		}), everything...)
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		cluster := servers.Redis.StartCluster(t)
		d := redisDeployment(t, repriseredis.Config{}, func() redis.UniversalClient {
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), ContextTimeoutEnabled: true})
			t.Cleanup(func() { _ = client.Close() })
			return client
		})
		d.repeats = true
		checked(t, d, everything...)
	})
	t.Run("valkey", func(t *testing.T) {
		t.Parallel()
		server := servers.Valkey.Shared(t)
		checked(t, redisDeployment(t, repriseredis.Config{}, func() redis.UniversalClient { return labtest.RedisClient(t, server.Addr()) }), everything...)
	})
}

// pgPrecision covers that PostgreSQL rounds to microseconds.
const pgPrecision = time.Millisecond

// pgDeployment is two processes over a schema of their own: leased, or transactional with
// a connection for each client.
func pgDeployment(tb testing.TB, server *servers.PostgresServer, url string, c reprisepg.Config, atomic bool, options ...labtest.PoolOption) *deployment {
	tb.Helper()
	f := labtest.SetupPostgres(tb, server)
	c.Schema = f.Config.Schema
	d := &deployment{atomic: atomic, exclusive: atomic, precision: pgPrecision, patience: 2 * time.Second}
	for range 2 {
		f := &labtest.Postgres{Pool: labtest.NewPool(tb, url, append(options, labtest.MaxConns(clients+4))...), Config: c}
		if atomic {
			d.stores = append(d.stores, f.Transactional(tb))
		} else {
			d.stores = append(d.stores, f.Leased(tb))
		}
	}
	return d
}

func TestPostgresIsLinearizable(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	for name, mode := range map[string]pgx.QueryExecMode{
		"prepared": 0, "exec": pgx.QueryExecModeExec, "describe exec": pgx.QueryExecModeDescribeExec,
		"simple protocol": pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run("leased/"+name, func(t *testing.T) {
			t.Parallel()
			checked(t, pgDeployment(t, server, server.URL(), reprisepg.Config{ExecMode: mode}, false), everything...)
		})
	}
	t.Run("transactional", func(t *testing.T) {
		t.Parallel()
		checked(t, pgDeployment(t, server, server.URL(), reprisepg.Config{}, true), everythingAtomic...)
	})
	for _, level := range []string{"serializable", "repeatable read"} {
		t.Run("leased/"+level, func(t *testing.T) {
			t.Parallel()
			checked(t, pgDeployment(t, server, server.URL(), reprisepg.Config{}, false, labtest.SessionParam("default_transaction_isolation", level)), everything...)
		})
	}
	t.Run("transactional/serializable", func(t *testing.T) {
		t.Parallel()
		checked(t, pgDeployment(t, server, server.URL(), reprisepg.Config{}, true, labtest.SessionParam("default_transaction_isolation", "serializable")), everythingAtomic...)
	})
	t.Run("pgbouncer", func(t *testing.T) {
		t.Parallel()
		server := servers.StartPostgres(t)
		bouncer := server.StartPgBouncer(t, "default_pool_size=20")
		c := reprisepg.Config{ExecMode: pgx.QueryExecModeExec}
		checked(t, pgDeployment(t, server, bouncer.URL(), c, false, labtest.ExecMode(pgx.QueryExecModeExec)), everything...)
		checked(t, pgDeployment(t, server, bouncer.URL(), c, true, labtest.ExecMode(pgx.QueryExecModeExec)), everythingAtomic...)
	})
}
