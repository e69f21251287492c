package postgres

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/core/store"
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
	pgWant(t, "NewSQL", err, nil)
	session := func() (pid int) {
		t.Helper()
		pgWant(t, "ask for the session", db.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid), nil)
		return pid
	}
	first := session()
	for range 3 {
		r := pgClaim()
		pgMustClaim(t, st, r, store.Claimed)
		pgWant(t, "complete", pgComplete(t, st, r, "answer"), nil)
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
	pgWant(t, "NewSQL", err, nil)
	pgMustClaim(t, st, pgClaim(), store.Claimed)
	broken.Store(true)
	if !pgPanics(func() { _, _ = st.Claim(t.Context(), pgClaim()) }) {
		t.Error("the hook did not panic")
	}
	broken.Store(false)
	pgMustClaim(t, st, pgClaim(), store.Claimed)
}

// pgReadTracer calls read when the record that a claim asked for was read.
type pgReadTracer struct{ read func() }

// TraceQueryStart implements pgx.QueryTracer.
func (p *pgReadTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, p, strings.Contains(data.SQL, "LEFT JOIN"))
}

// TraceQueryEnd implements pgx.QueryTracer.
func (p *pgReadTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if ctx.Value(p) == true {
		p.read()
	}
}

// TestPostgresSQLClaimCanceledAtItsEnd: a claim whose context ends after its statements
// and before its return is not granted, because database/sql rolls its transaction back.
func TestPostgresSQLClaimCanceledAtItsEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, st, _ := pgSQLSetup(t, func(c *pgxpool.Config) { c.ConnConfig.Tracer = &pgReadTracer{read: cancel} })
	r := pgClaim()
	got, err := st.Claim(ctx, r)
	pgWant(t, "claim", err, store.ErrUnknown)
	if got.Outcome != 0 {
		t.Errorf("a claim that failed was answered %v", got.Outcome)
	}
	if _, ok := reprisepg.SQLTx(st.Bind(t.Context(), r.ID, r.Owner)); ok {
		t.Error("a claim that failed has a transaction")
	}
	rival := pgRival(r)
	pgEventually(t, "the server has rolled back", func() bool {
		return pgMustNotFail(t, st, rival).Outcome == store.Claimed
	})
	pgWant(t, "complete", pgComplete(t, st, rival, "answer"), nil)
}
