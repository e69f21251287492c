package postgres

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresConformance: every other handle of a fixture is over database/sql, where
// the others are over a pool of pgx: a case of two handles has one of each. All cases
// share the pools, because a connection costs the server more than a case.
func TestPostgresConformance(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	pool := labtest.NewPool(t, server.URL(), labtest.MaxConns(16))
	db := labtest.NewDB(t, server.URL(), labtest.MaxConns(16), // with sessions that write values as text in other ways than by default
		labtest.SessionParam("bytea_output", "escape"), labtest.SessionParam("DateStyle", "German"), labtest.SessionParam("client_encoding", "LATIN1"))
	storetest.Run(t, func(tb testing.TB) storetest.Fixture {
		f := pgOn(pool, reprisepg.Config{Schema: "t_" + strings.ToLower(rand.Text())})
		labtest.Must(tb, reprisepg.Migrate(tb.Context(), pool, f.Config))
		fixture, handle := pgSuite(tb, f), labtest.Draw(tb) // by the name of the case: which is the first
		fixture.Open = func(tb testing.TB) store.Store {
			if handle++; handle%2 == 0 {
				st, err := reprisepg.New(db, f.Config)
				labtest.Must(tb, err)
				return st
			}
			return f.Leased(tb)
		}
		return fixture
	})
}

// TestPostgresConformanceSerializable: a server whose default is not READ COMMITTED only
// costs repetitions.
func TestPostgresConformanceSerializable(t *testing.T) {
	t.Parallel()
	labtest.Breadth(t, "runs of a suite over a further deployment")
	server := servers.SharedPostgres(t)
	storetest.Run(t, func(tb testing.TB) storetest.Fixture {
		return pgSuite(tb, pgSetup(tb, server, labtest.MaxConns(4), labtest.SessionParam("default_transaction_isolation", "serializable")))
	})
}

// pgSuite is the fixture of a store over either pool.
func pgSuite(tb testing.TB, f *pgFixture) storetest.Fixture {
	tb.Helper()
	table := sync.OnceFunc(func() { f.exec(tb, "CREATE TABLE "+f.name("effects")+" (n integer)") }) // few cases need it
	exec := func(ctx context.Context, statement string) error { return pgExecTx(ctx, statement) }
	return storetest.Fixture{
		Effects: &storetest.Effects{
			Write: func(ctx context.Context) error {
				table()
				return exec(ctx, "INSERT INTO "+f.name("effects")+" VALUES (1)")
			},
			Exec: exec,
			Count: func(tb testing.TB) int {
				tb.Helper()
				table()
				return f.effects(tb)
			},
		},
		Open:    func(tb testing.TB) store.Store { return f.Leased(tb) },
		Advance: func(_ testing.TB, d time.Duration) { pgPass(d) },
		Corrupt: func(tb testing.TB, id store.ID, how storetest.Corruption) {
			tb.Helper()
			if how == storetest.WrongType {
				tb.Skip("a column of a table has the type that it was made with")
			}
			f.exec(tb, f.pgDamage(labtest.Damage[how]), id[:])
		},
	}
}
