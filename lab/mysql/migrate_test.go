package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/internal/schematest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// bareDatabase returns the URL of a new database without the tables.
func bareDatabase(t *testing.T) string {
	t.Helper()
	raw := mysqlserver.New(t, servers.SharedMariaDB(t))
	mysqlserver.Exec(t, raw, "DROP TABLE reprise_records, reprise_records_migrations")
	return raw
}

// schema is that of a new database. Goose needs parseTime.
func schema(t *testing.T) *schematest.Schema {
	t.Helper()
	raw := bareDatabase(t)
	s := schematest.Of(t, func(log *slog.Logger) reprisemysql.Config { return reprisemysql.Config{Logger: log} }, reprisemysql.Migrations,
		reprisemysql.New, reprisemysql.Open, reprisemysql.Migrate, reprisemysql.SchemaVersion)
	s.Dialect, s.Pool = goose.DialectMySQL, func() *sql.DB { return mysqlserver.Pool(t, raw+"?parseTime=true", 0) }
	return s
}

func TestSchema(t *testing.T) {
	t.Parallel()
	schematest.Run(t, schema, reprisemysql.Tx, "5a8e9eb1fc95c55579e46dee576654bec73eb66fd382548885cb17373e49c3bb")
}

// TestMigrationIsCompleted: whichever statement was the last of a process that died, the
// next one does the rest, of two steps.
func TestMigrationIsCompleted(t *testing.T) {
	t.Parallel()
	raw := bareDatabase(t)
	proxy := servers.StartProxy(t, servers.SharedMariaDB(t).Addr())
	next := func(raw string, c reprisemysql.Config) (st *reprisemysql.Store, migrate func(context.Context) error) {
		st = newStore(t, mysqlserver.Pool(t, raw, 0), c)
		return st, schematest.NextRelease(st,
			"ALTER TABLE {records} ADD COLUMN later INT NOT NULL DEFAULT 7, ADD COLUMN second INT NOT NULL DEFAULT 8",
			"CREATE INDEX later ON {records} (later)", "ALTER TABLE {records} DROP COLUMN second")
	}
	failed := 0
	for _, action := range []servers.Action{servers.LoseRequest, servers.LoseReply} {
		for n, reached := 1, true; reached; n++ {
			c := reprisemysql.Config{Table: fmt.Sprintf("records_%d_%d", action, n)}
			proxy.Heal(t)
			cut := proxy.On("\x00\x00\x03", append(slices.Repeat([]servers.Action{servers.Pass}, n-1), action)...) // a query
			_, migrate := next(proxy.URL(raw), c)
			if err := migrate(t.Context()); err != nil {
				failed++
				<-cut
			}
			select {
			case <-cut:
			default:
				reached = false
			}
			st, migrate := next(raw, c)
			if err := migrate(t.Context()); err != nil {
				t.Fatalf("after a cut at statement %d, action %d: %v", n, action, err)
			}
			schematest.WantFinding(t, "completed", st, 0, "")
			if n := count(t, raw, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ? AND column_name IN ('later', 'second')", c.Table); n != 1 {
				t.Errorf("%d of the two columns, want one", n)
			}
			if n := count(t, raw, "SELECT COUNT(*) FROM "+c.Table+"_migrations"); n != 2 {
				t.Errorf("%d versions", n)
			}
		}
	}
	if failed < 20 {
		t.Errorf("%d migrations were cut", failed)
	}
}

// TestVanishedMigrationHoldsUpNoOther: for long, although the server does not see that
// the one which has the lock is gone.
func TestVanishedMigrationHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	raw := bareDatabase(t)
	proxy := servers.StartProxy(t, servers.SharedMariaDB(t).Addr())
	proxy.On("GET_LOCK", servers.Silence)
	db := mysqlserver.Pool(t, proxy.URL(raw), 0)
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	labtest.Want(t, "without an answer", reprisemysql.Migrate(short, db, reprisemysql.Config{}), store.ErrBusy)
	other := mysqlserver.Pool(t, raw, 0)
	shorter, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	labtest.Want(t, "while the lock is held", reprisemysql.Migrate(shorter, other, reprisemysql.Config{}), store.ErrBusy)
	long, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	labtest.Must(t, reprisemysql.Migrate(long, other, reprisemysql.Config{}))
}

func TestMigrationLetsOthersGoOn(t *testing.T) {
	t.Parallel()
	schema(t).LetsOthersGoOn(t, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND state LIKE 'Waiting for table metadata lock%' AND info LIKE 'ALTER%'")
}

// TestServiceSeesItsSchema: with the rights that the manual names it needs no others to
// call Migrate once the schema is there, and learns which one is missing.
func TestServiceSeesItsSchema(t *testing.T) {
	t.Parallel()
	raw := bareDatabase(t)
	user := fmt.Sprintf("reader%d", time.Now().UnixNano())
	mysqlserver.Exec(t, raw, "CREATE USER "+user+"@'127.0.0.1' IDENTIFIED BY 'secret'")
	t.Cleanup(func() { mysqlserver.Exec(t, raw, "DROP USER "+user+"@'127.0.0.1'") })
	c := reprisemysql.Config{}
	labtest.Must(t, reprisemysql.Migrate(t.Context(), mysqlserver.Pool(t, raw, 0), c))
	mysqlserver.Exec(t, raw, "GRANT SELECT, INSERT, UPDATE, DELETE ON reprise_records TO "+user+"@'127.0.0.1'")
	service := strings.Replace(raw, "root@", user+":secret@", 1)
	st := newStore(t, mysqlserver.Pool(t, service, 0), c)
	schematest.WantFinding(t, "without SELECT", st, store.Unsafe, "grant SELECT on reprise_records_migrations")
	mysqlserver.Exec(t, raw, "GRANT SELECT ON reprise_records_migrations TO "+user+"@'127.0.0.1'")
	db := mysqlserver.Pool(t, service, 0)
	labtest.Must(t, reprisemysql.Migrate(t.Context(), db, c))
	_, err := reprisemysql.Open(t.Context(), db, c)
	labtest.Must(t, err)
}
