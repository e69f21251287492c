package postgres

import (
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestPostgresPreparesAgain: a session that loses its statements once, or one of them,
// because the application deallocates them, has them prepared again, and no call fails. A
// session that loses them twice in a short time is one that a pooler shares: the store
// then goes on without them.
func TestPostgresPreparesAgain(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	for _, loss := range []string{"DEALLOCATE ALL", "DISCARD ALL", "one"} {
		t.Run(loss, func(t *testing.T) {
			var log pgLog
			c := f.Config
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			pool := labtest.NewPool(t, servers.SharedPostgres(t).URL(), labtest.MaxConns(3)) // one is used
			st := pgOn(pool, c).Leased(t)
			prepared := func() int {
				return pgValue[int](t, pool, "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'reprise\\_%'", pgx.QueryExecModeExec)
			}
			lose := func() {
				statement := loss
				if loss == "one" {
					statement = pgValue[string](t, pool, `SELECT 'DEALLOCATE ' || quote_ident(name) FROM pg_prepared_statements
							WHERE name LIKE 'reprise\_%' ORDER BY prepare_time LIMIT 1`, pgx.QueryExecModeExec)
				}
				pgOn(pool, c).exec(t, statement)
			}
			life := func() {
				r := labtest.Completed(t, st, "answer")
				labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
			}
			life()
			before := prepared()
			lose()
			life()
			life()
			if n := prepared(); before == 0 || n != before || log.contains("prepared statements") {
				t.Errorf("%d statements are prepared after the first loss, want %d", n, before)
			}
			lose()
			life()
			rest := prepared()
			life()
			if !log.contains("without keeping prepared statements") || prepared() > rest {
				t.Error("the store goes on preparing in a session that loses its statements again")
			}
		})
	}
}
