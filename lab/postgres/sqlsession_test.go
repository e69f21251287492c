package postgres

import (
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresSQLSessionsAreKept: a store over a *sql.DB gives back the connection that
// it took, and every call goes over it.
func TestPostgresSQLSessionsAreKept(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	db := labtest.NewDB(t, server.URL(), labtest.MaxConns(1))
	st, err := reprisepg.NewSQL(db, f.Config)
	labtest.Must(t, err)
	session := func() (pid int) {
		t.Helper()
		labtest.Must(t, db.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
		return pid
	}
	first := session()
	for range 3 {
		labtest.Completed(t, st, "answer")
	}
	if last := session(); last != first {
		t.Errorf("the calls began with the session %d and ended with %d", first, last)
	}
}

// TestPostgresSQLSessionAfterAPanicMidReply: where a hook of the application panics
// while a result is read, its connection is of no use to the next call, which gets
// another.
func TestPostgresSQLSessionAfterAPanicMidReply(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	f.exec(t, "CREATE FUNCTION "+f.name("say")+"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'said'; RETURN NEW; END $$;"+
		" CREATE TRIGGER say BEFORE INSERT ON "+f.records()+" FOR EACH ROW EXECUTE FUNCTION "+f.name("say")+"()")
	var broken atomic.Bool
	db := labtest.NewDB(t, server.URL(), labtest.MaxConns(1), func(c *pgxpool.Config) {
		c.ConnConfig.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {
			if broken.Load() {
				panic("the hook is broken")
			}
		}
	})
	f.Config.NoCombining = true // the call panics, and not a batch
	st, err := reprisepg.NewSQL(db, f.Config)
	labtest.Must(t, err)
	labtest.Claimed(t, st)
	broken.Store(true)
	if !pgPanics(func() { _, _ = st.Claim(t.Context(), labtest.NewClaim()) }) {
		t.Error("the hook did not panic")
	}
	broken.Store(false)
	labtest.Claimed(t, st)
}
