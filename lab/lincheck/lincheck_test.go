package lincheck

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/lab/serve/sqlitefile"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
	repriseredis "github.com/reprise-go/reprise/store/redis"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func TestMemoryIsLinearizable(t *testing.T) {
	t.Parallel()
	checked(t, &deployment{stores: []store.Store{memstore.New()}, clock: memoryClock}, everything...)
}

// twoProcesses are stores that open opens. Where inTx is true, their completions are
// those of transactions of handlers, which tx begins.
func twoProcesses[T any](inTx bool, tx func(context.Context) (T, error), open func() labtest.TransactorStore) (stores []store.Store) {
	for range 2 {
		st := open()
		if !inTx {
			stores = append(stores, st)
			continue
		}
		stores = append(stores, &completesInTx{st, func(ctx context.Context) error { _, err := tx(ctx); return err }})
	}
	return stores
}

// sqliteDeployment is two processes over a new file.
func sqliteDeployment(tb testing.TB, inTx bool) *deployment {
	tb.Helper()
	file := sqlitefile.New(tb)
	// A call takes some milliseconds under the race detector: with the leases of the others
	// hardly an attempt would be completed before it lapses.
	return &deployment{
		stores: twoProcesses(inTx, reprisesqlite.Tx, func() labtest.TransactorStore { return sqlitefile.Store(tb, file) }),
		clock:  sqlClock, pace: pace{unit: 2 * time.Millisecond, calls: 60},
	}
}

func TestSQLiteIsLinearizable(t *testing.T) {
	t.Parallel()
	for name, inTx := range map[string]bool{"plain": false, "transactional": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checked(t, sqliteDeployment(t, inTx), everything...)
		})
	}
}

// mysqlDeployment is two processes over a new database. The parameters of the URL are
// those of their sessions.
func mysqlDeployment(tb testing.TB, inTx bool, params string) *deployment {
	tb.Helper()
	raw := mysqlserver.New(tb, servers.SharedMariaDB(tb)) + params
	open := func() labtest.TransactorStore { return mysqlserver.Store(tb, raw) }
	return &deployment{stores: twoProcesses(inTx, reprisemysql.Tx, open), clock: sqlClock}
}

// TestMySQLIsLinearizable: whatever the isolation level of a session is.
func TestMySQLIsLinearizable(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"} {
		for name, inTx := range map[string]bool{"plain": false, "transactional": true} {
			t.Run(name+"/"+level, func(t *testing.T) {
				t.Parallel()
				if level == "REPEATABLE-READ" || inTx != (level == "SERIALIZABLE") {
					labtest.Breadth(t, further)
				}
				checked(t, mysqlDeployment(t, inTx, "?tx_isolation='"+level+"'"), everything...)
			})
		}
	}
}

func redisDeployment(tb testing.TB, c repriseredis.Config, connect func() redis.UniversalClient) *deployment {
	tb.Helper()
	c.Prefix = labtest.RedisPrefix()
	return &deployment{
		stores: []store.Store{labtest.RedisStore(tb, connect(), c), labtest.RedisStore(tb, connect(), c)},
		clock:  redisClock, asksAgain: true, repeats: c.Durability != repriseredis.Async(),
	}
}

// further is left to make nightly.
const further = "histories of a further deployment"

// acked is a configuration that confirms each write, and so repeats each claim that was
// granted.
var acked = repriseredis.Config{Durability: repriseredis.Acked(1)}

// inBoth checks a deployment without confirmations, and one that waits for a replica.
func inBoth(t *testing.T, open func(*testing.T, repriseredis.Config) *deployment) {
	t.Helper()
	for name, c := range map[string]repriseredis.Config{"async": {}, "acked": acked} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checked(t, open(t, c), everything...)
		})
	}
}

func TestRedisIsLinearizable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]repriseredis.Config{
		"combined": {}, "one by one": {NoCombining: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.NoCombining {
				labtest.Breadth(t, further)
			}
			server := servers.Redis.Shared(t)
			checked(t, redisDeployment(t, c, func() redis.UniversalClient { return labtest.RedisClient(t, server.Addr()) }), everything...)
		})
	}
	t.Run("acked", func(t *testing.T) {
		t.Parallel()
		pair := servers.Redis.StartReplicated(t, 1)
		checked(t, redisDeployment(t, acked, func() redis.UniversalClient { return labtest.RedisClient(t, pair.Primary.Addr()) }), everything...)
	})
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		labtest.Breadth(t, further)
		watched := servers.Redis.StartSentinel(t)
		inBoth(t, func(t *testing.T, c repriseredis.Config) *deployment {
			t.Helper()
			return redisDeployment(t, c, func() redis.UniversalClient {
				client := redis.NewFailoverClient(&redis.FailoverOptions{
					MasterName: watched.MasterName, SentinelAddrs: watched.SentinelAddrs(), ContextTimeoutEnabled: true,
				})
				t.Cleanup(func() { _ = client.Close() })
				return client
			})
		})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		labtest.Breadth(t, further)
		cluster := servers.Redis.StartCluster(t)
		inBoth(t, func(t *testing.T, c repriseredis.Config) *deployment {
			t.Helper()
			d := redisDeployment(t, c, func() redis.UniversalClient {
				return labtest.RedisCluster(t, &redis.ClusterOptions{Addrs: cluster.Addrs()})
			})
			d.repeats = true
			return d
		})
	})
	t.Run("valkey", func(t *testing.T) {
		t.Parallel()
		labtest.Breadth(t, further)
		server := servers.Valkey.Shared(t)
		checked(t, redisDeployment(t, repriseredis.Config{}, func() redis.UniversalClient { return labtest.RedisClient(t, server.Addr()) }), everything...)
	})
}

// pgDeployment is two processes over a new schema, with a connection for each client.
// Where inTx is true, the handlers complete in a transaction.
func pgDeployment(tb testing.TB, server *servers.PostgresServer, url string, c reprisepg.Config, inTx bool, options ...labtest.PoolOption) *deployment {
	tb.Helper()
	c.Schema = labtest.SetupPostgres(tb, server).Config.Schema
	return pgProcesses(tb, url, c, inTx, options...)
}

// pgProcesses is pgDeployment over the schema of c.
func pgProcesses(tb testing.TB, url string, c reprisepg.Config, inTx bool, options ...labtest.PoolOption) *deployment {
	tb.Helper()
	open := func() labtest.TransactorStore {
		f := &labtest.Postgres{Pool: labtest.NewPool(tb, url, append(options, labtest.MaxConns(clients+4))...), Config: c}
		return f.Leased(tb)
	}
	return &deployment{stores: twoProcesses(inTx, reprisepg.Tx, open), clock: sqlClock}
}

// sqlDeployment is pgDeployment over database/sql.
func sqlDeployment(tb testing.TB, server *servers.PostgresServer, inTx bool) *deployment {
	tb.Helper()
	c := reprisepg.Config{Schema: labtest.SetupPostgres(tb, server).Config.Schema}
	open := func() labtest.TransactorStore {
		st, err := reprisepg.New(labtest.NewDB(tb, server.URL(), labtest.MaxConns(clients+4)), c)
		labtest.Must(tb, err)
		return st
	}
	return &deployment{stores: twoProcesses(inTx, reprisepg.SQLTx, open), clock: sqlClock}
}

// completesInTx is a store whose completions are those of a handler's transaction.
type completesInTx struct {
	labtest.TransactorStore
	begin func(context.Context) error
}

// Complete implements [store.Store].
func (s *completesInTx) Complete(ctx context.Context, r store.CompleteRequest) error {
	bound, tx := s.Transaction(ctx, r.ID, r.Owner)
	err := s.begin(bound)
	switch begun := tx.Close(); {
	case begun:
		err = tx.Commit(ctx, r)
	case err != nil:
		return store.ErrUnavailable // it was not executed
	}
	switch {
	case errors.Is(err, store.ErrNotApplied):
		return store.ErrUnavailable
	case errors.Is(err, store.ErrLeaseLost): // also where the owner has completed before, which the store then says
		return s.TransactorStore.Complete(ctx, r)
	}
	return err
}

func TestPostgresIsLinearizable(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	for name, mode := range map[string]pgx.QueryExecMode{"prepared": pgx.QueryExecModeCacheStatement, "exec": pgx.QueryExecModeExec} {
		t.Run("leased/"+name, func(t *testing.T) {
			t.Parallel()
			if mode == pgx.QueryExecModeExec {
				labtest.Breadth(t, further)
			}
			checked(t, pgDeployment(t, server, server.URL(), reprisepg.Config{}, false, labtest.ExecMode(mode)), everything...)
		})
	}
	t.Run("transactional", func(t *testing.T) {
		t.Parallel()
		checked(t, pgDeployment(t, server, server.URL(), reprisepg.Config{}, true), everything...)
	})
	for _, level := range []string{"serializable", "repeatable read"} {
		isolated := labtest.SessionParam("default_transaction_isolation", level)
		t.Run("leased/"+level, func(t *testing.T) {
			t.Parallel()
			labtest.Breadth(t, further)
			checked(t, pgDeployment(t, server, server.URL(), reprisepg.Config{}, false, isolated), everything...)
		})
		t.Run("transactional/"+level, func(t *testing.T) {
			t.Parallel()
			labtest.Breadth(t, further)
			checked(t, pgDeployment(t, server, server.URL(), reprisepg.Config{}, true, isolated), everything...)
		})
	}
	t.Run("leased/database sql", func(t *testing.T) {
		t.Parallel()
		checked(t, sqlDeployment(t, server, false), everything...)
	})
	t.Run("transactional/database sql", func(t *testing.T) {
		t.Parallel()
		labtest.Breadth(t, further)
		checked(t, sqlDeployment(t, server, true), everything...)
	})
	t.Run("pgbouncer", func(t *testing.T) {
		t.Parallel()
		labtest.Breadth(t, further)
		server := servers.StartPostgres(t)
		bouncer := server.StartPgBouncer(t, "default_pool_size=20")
		checked(t, pgDeployment(t, server, bouncer.URL(), reprisepg.Config{}, false, labtest.ExecMode(pgx.QueryExecModeExec)), everything...)
		checked(t, pgDeployment(t, server, bouncer.URL(), reprisepg.Config{}, true, labtest.ExecMode(pgx.QueryExecModeExec)), everything...)
	})
}
