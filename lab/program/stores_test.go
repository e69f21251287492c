package program

import (
	"context"
	"crypto/rand"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql" // a driver
	_ "modernc.org/sqlite"             // a driver

	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
	repriseredis "github.com/reprise-go/reprise/store/redis"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// fixture is a store as the application has it, and the program's settings for it.
type fixture struct {
	store store.Store
	env   []string // for the program

	// ruin writes something into the record of id that no release can read.
	ruin func(tb testing.TB, id store.ID)

	do     func(ctx context.Context, statement string) error // executes a statement as the server's owner
	expire func(ctx context.Context, n int) error            // writes records whose retention has ended
}

// servedBy are the stores that the scripts run on.
var servedBy = map[string]func(tb testing.TB) *fixture{
	"redis": func(tb testing.TB) *fixture {
		addr := servers.Redis.Shared(tb).Addr()
		return redisFixture(tb, labtest.RedisClient(tb, addr), "redis://"+addr)
	},
	"postgres": func(tb testing.TB) *fixture {
		server := servers.SharedPostgres(tb)
		return postgresFixture(tb, labtest.SetupPostgres(tb, server), server.URL())
	},
}

func init() {
	servedBy["sqlite"] = func(tb testing.TB) *fixture {
		file := filepath.Join(tb.TempDir(), "records.db")
		labtest.Must(tb, os.WriteFile(file, nil, 0o600)) // the program makes no file
		return sqlFixture(tb, "sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)", "sqlite:"+file)
	}
	servedBy["mariadb"] = func(tb testing.TB) *fixture {
		name, addr := "t_"+strings.ToLower(rand.Text()), servers.SharedMariaDB(tb).Addr()
		db, err := sql.Open("mysql", "root@tcp("+addr+")/")
		labtest.Must(tb, err)
		defer db.Close()
		_, err = db.ExecContext(tb.Context(), "CREATE DATABASE "+name)
		labtest.Must(tb, err)
		return sqlFixture(tb, "mysql", "root@tcp("+addr+")/"+name, "mysql://root@"+addr+"/"+name)
	}
}

// sqlFixture is a store over database/sql, whose tables the program makes.
func sqlFixture(tb testing.TB, driver, source, url string) *fixture {
	tb.Helper()
	db, err := sql.Open(driver, source)
	labtest.Must(tb, err)
	tb.Cleanup(func() { _ = db.Close() })
	env := []string{"REPRISE_STORE=" + url, "ELSEWHERE=--table=empty", "DOCTOR=0", "FINDING=every operation works"}
	f := &fixture{ruin: func(tb testing.TB, id store.ID) {
		tb.Helper()
		_, err := db.ExecContext(context.WithoutCancel(tb.Context()), "UPDATE reprise_records SET version = 99 WHERE id = ?", id[:])
		labtest.Must(tb, err)
	}}
	for _, table := range []string{"empty", "reprise_records"} {
		runProgram(tb, env, 3, "doctor", "--table", table)
		runProgram(tb, env, 1, "migrate", "status", "--table", table)
		runProgram(tb, env, 0, "migrate", "apply", "--table", table)
	}
	if driver == "sqlite" {
		f.env = slices.Concat(env, []string{"STORE=SQLite "})
		s, err := reprisesqlite.New(db, reprisesqlite.Config{})
		labtest.Must(tb, err)
		list, err := s.Check(tb.Context())
		labtest.Must(tb, err)
		if f.store = s; len(list) > 0 { // the disk of this machine may be nearly full
			f.env = append(f.env, "DOCTOR=1")
		}
	} else {
		f.env = slices.Concat(env, []string{"STORE=MySQL ", "DOCTOR=1", "FINDING=! innodb-flush-log: "}) // the test servers are not made to survive a crash
		f.store, err = reprisemysql.New(db, reprisemysql.Config{})
	}
	labtest.Must(tb, err)
	return f
}

// reachedBy are the other ways to a store, which differ in how the program opens it.
var reachedBy = map[string]func(tb testing.TB) *fixture{
	"sentinel": func(tb testing.TB) *fixture {
		watched := servers.Redis.StartSentinel(tb)
		client := redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: watched.MasterName, SentinelAddrs: watched.SentinelAddrs(), ContextTimeoutEnabled: true,
		})
		tb.Cleanup(func() { _ = client.Close() })
		return redisFixture(tb, client, "redis+sentinel://"+strings.Join(watched.SentinelAddrs(), ",")+"/0?master="+watched.MasterName)
	},
	"cluster": func(tb testing.TB) *fixture {
		cluster := servers.Redis.StartCluster(tb)
		client := labtest.RedisCluster(tb, &redis.ClusterOptions{Addrs: cluster.Addrs()})
		return redisFixture(tb, client, "redis+cluster://"+strings.Join(cluster.Addrs(), ","))
	},
	"pgbouncer": func(tb testing.TB) *fixture {
		server := servers.SharedPostgres(tb)
		return postgresFixture(tb, labtest.SetupPostgres(tb, server), server.StartPgBouncer(tb).URL())
	},
}

func redisFixture(tb testing.TB, client redis.UniversalClient, url string) *fixture {
	tb.Helper()
	prefix := labtest.RedisPrefix()
	return &fixture{
		store: labtest.RedisStore(tb, client, repriseredis.Config{Prefix: prefix}),
		env: []string{
			"REPRISE_STORE=" + url, "REPRISE_PREFIX=" + prefix, "ELSEWHERE=--prefix=typo:",
			"DOCTOR=1", "STORE=Redis ", "FINDING=every operation works",
		},
		ruin: func(tb testing.TB, id store.ID) {
			tb.Helper()
			labtest.Must(tb, client.Set(context.WithoutCancel(tb.Context()), labtest.RedisKey(prefix, id), "\x1b[2J", 0).Err())
		},
	}
}

func postgresFixture(tb testing.TB, f *labtest.Postgres, url string) *fixture {
	tb.Helper()
	empty := f.Config.Schema + "_empty"
	runProgram(tb, []string{"REPRISE_STORE=" + url}, 0, "migrate", "apply", "--schema", empty)
	return &fixture{
		store: f.Leased(tb),
		env: []string{
			"REPRISE_STORE=" + url, "REPRISE_SCHEMA=" + f.Config.Schema, "ELSEWHERE=--schema=" + empty,
			"DOCTOR=3", "STORE=PostgreSQL ", "FINDING=✗ fsync: ",
		},
		ruin: func(tb testing.TB, id store.ID) {
			tb.Helper()
			tag, err := f.Pool.Exec(context.WithoutCancel(tb.Context()), "UPDATE "+f.Config.Schema+".reprise_records SET version = 99 WHERE id = $1", id[:])
			if err != nil || tag.RowsAffected() != 1 {
				tb.Fatalf("%d rows, %v", tag.RowsAffected(), err)
			}
		},
	}
}
