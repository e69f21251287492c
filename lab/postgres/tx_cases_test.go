package postgres

import (
	"context"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresNestedAttemptsHaveTheirOwn: an attempt inside another one has its own
// transaction, or none, and never that of the other: their ends are two.
func TestPostgresNestedAttemptsHaveTheirOwn(t *testing.T) {
	t.Parallel()
	onBoth(t, 6, 0, func(t *testing.T, h *labtest.SQLHandlers) {
		engine, err := reprise.New(h.Store, reprise.Config{})
		labtest.Must(t, err)
		elsewhere, err := reprise.New(memstore.New(), reprise.Config{})
		labtest.Must(t, err)
		begin := func(ctx context.Context, e *reprise.Engine, key string, transactional bool) *reprise.Attempt {
			t.Helper()
			got, err := e.Begin(ctx, reprise.Operation{Scope: "tenant", Key: key, Transactional: transactional})
			labtest.Must(t, err)
			return got.Attempt
		}
		outer := begin(t.Context(), engine, "outer", true)
		labtest.Must(t, h.Write(outer.Context(), "undone"))
		for name, inner := range map[string]*reprise.Attempt{
			"another policy": begin(outer.Context(), engine, "another policy", false), "the same key, another store": begin(outer.Context(), elsewhere, "outer", false),
		} {
			labtest.Want(t, name, h.Write(inner.Context(), "refused"), store.ErrInvalid)
			labtest.Must(t, inner.Release())
		}
		inner := begin(outer.Context(), engine, "inner", true)
		labtest.Must(t, h.Write(inner.Context(), "kept"))
		_, err = inner.Complete(reprise.Completion{Payload: []byte("answer")})
		labtest.Must(t, err)
		labtest.Must(t, h.Write(outer.Context(), "undone"))
		labtest.Must(t, outer.Release())
		var effects string
		labtest.Must(t, h.DB.QueryRowContext(t.Context(), "SELECT string_agg(name, ' ') FROM effects").Scan(&effects))
		if effects != "kept" {
			t.Errorf("the effects are %q", effects)
		}
		labtest.Must(t, elsewhere.Close(t.Context()))
		labtest.Must(t, engine.Close(t.Context()))
	})
}

func TestPostgresEndedByTheHandler(t *testing.T) {
	t.Parallel()
	onBoth(t, 6, 0, func(t *testing.T, h *labtest.SQLHandlers) {
		h.EndsAreFoundOut(t, []string{"COMMIT"}, []string{"ROLLBACK"}, []string{"COMMIT", "BEGIN", labtest.Second}, []string{"ROLLBACK", "BEGIN", labtest.Second},
			[]string{"COMMIT AND CHAIN", labtest.Second}, []string{"ROLLBACK AND CHAIN", labtest.Second})
	})
}

// TestPostgresHabitsDoNoHarm: a handler over database/sql that ends its *sql.Tx, or rolls
// it back when it returns, ends nothing.
func TestPostgresHabitsDoNoHarm(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	pgSetup(t, server).handlers(t, server.URL(), true).HabitsDoNoHarm(t, reprisepg.ErrTxManaged)
}

func TestPostgresTransactionTimesOut(t *testing.T) {
	t.Parallel()
	onBoth(t, 6, time.Second, func(t *testing.T, h *labtest.SQLHandlers) { h.TimesOut(t, "SELECT pg_sleep(60)", "TRUNCATE effects") })
}

// TestPostgresPoolsOfAnySize: fifty handlers at once, over pools in which there is hardly
// room for one, all commit; claims and renewals find a connection meanwhile.
func TestPostgresPoolsOfAnySize(t *testing.T) {
	t.Parallel()
	for _, conns := range []int32{2, 4} {
		onBoth(t, conns, 4*time.Second, func(t *testing.T, h *labtest.SQLHandlers) { h.FiftyAtOnce(t) })
	}
	labtest.Want(t, "a pool of one", pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(1)).Leased(t).Transacts(), store.ErrInvalid)
}
