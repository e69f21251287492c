package lincheck

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
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
	file := filepath.Join(tb.TempDir(), "records.db")
	open := func() labtest.TransactorStore {
		db, err := serve.OpenFile(file, 0)
		labtest.Must(tb, err)
		tb.Cleanup(func() { _ = db.Close() })
		labtest.Must(tb, reprisesqlite.Migrate(tb.Context(), db, reprisesqlite.Config{}))
		st, err := reprisesqlite.New(db, reprisesqlite.Config{})
		labtest.Must(tb, err)
		return st
	}
	// A call takes some milliseconds under the race detector: with the leases of the others
	// hardly an attempt would be completed before it lapses.
	return &deployment{stores: twoProcesses(inTx, reprisesqlite.Tx, open), clock: sqlClock, pace: pace{unit: 2 * time.Millisecond, calls: 60}}
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
				raw := mysqlserver.New(t, servers.SharedMariaDB(t)) + "?tx_isolation='" + level + "'"
				open := func() labtest.TransactorStore { return mysqlserver.Store(t, raw) }
				checked(t, &deployment{stores: twoProcesses(inTx, reprisemysql.Tx, open), clock: sqlClock}, everything...)
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

// redisAt is redisDeployment on one server.
func redisAt(tb testing.TB, server *servers.RedisServer, c repriseredis.Config) *deployment {
	tb.Helper()
	return redisDeployment(tb, c, func() redis.UniversalClient { return labtest.RedisClient(tb, server.Addr()) })
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
			checked(t, redisAt(t, servers.Redis.Shared(t), c), everything...)
		})
	}
	t.Run("acked", func(t *testing.T) {
		t.Parallel()
		checked(t, redisAt(t, servers.Redis.StartReplicated(t, 1).Primary, acked), everything...)
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
		checked(t, redisAt(t, servers.Valkey.Shared(t), repriseredis.Config{}), everything...)
	})
}

// pgDeployment is two processes over the schema of c, with a connection for each client,
// over pools of pgx or of database/sql. Where inTx is true, the handlers complete in a
// transaction.
func pgDeployment(tb testing.TB, url string, c reprisepg.Config, inTx, overSQL bool, options ...labtest.PoolOption) *deployment {
	tb.Helper()
	options = append(options, labtest.MaxConns(clients+4))
	stores := twoProcesses(inTx, reprisepg.Tx, func() labtest.TransactorStore {
		return (&labtest.Postgres{Pool: labtest.NewPool(tb, url, options...), Config: c}).Leased(tb)
	})
	if overSQL {
		stores = twoProcesses(inTx, reprisepg.SQLTx, func() labtest.TransactorStore {
			st, err := reprisepg.New(labtest.NewDB(tb, url, options...), c)
			labtest.Must(tb, err)
			return st
		})
	}
	return &deployment{stores: stores, clock: sqlClock}
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
	prepared := labtest.ExecMode(pgx.QueryExecModeCacheStatement)
	exec := labtest.ExecMode(pgx.QueryExecModeExec)
	isolated := func(level string) labtest.PoolOption {
		return labtest.SessionParam("default_transaction_isolation", level)
	}
	for name, c := range map[string]struct {
		inTx, overSQL, pooled, further bool
		option                         labtest.PoolOption
	}{
		"leased/prepared":               {option: prepared},
		"leased/exec":                   {option: exec, further: true},
		"leased/serializable":           {option: isolated("serializable"), further: true},
		"leased/repeatable read":        {option: isolated("repeatable read"), further: true},
		"leased/database sql":           {option: prepared, overSQL: true},
		"leased/pgbouncer":              {option: exec, pooled: true, further: true},
		"transactional/prepared":        {option: prepared, inTx: true},
		"transactional/serializable":    {option: isolated("serializable"), inTx: true, further: true},
		"transactional/repeatable read": {option: isolated("repeatable read"), inTx: true, further: true},
		"transactional/database sql":    {option: prepared, inTx: true, overSQL: true, further: true},
		"transactional/pgbouncer":       {option: exec, inTx: true, pooled: true, further: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.further {
				labtest.Breadth(t, further)
			}
			server := servers.SharedPostgres(t)
			config, url := labtest.SetupPostgres(t, server).Config, server.URL()
			if c.pooled {
				url = server.StartPgBouncer(t, "default_pool_size=20").URL()
			}
			checked(t, pgDeployment(t, url, config, c.inTx, c.overSQL, c.option), everything...)
		})
	}
}
