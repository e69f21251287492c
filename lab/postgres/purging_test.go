package postgres

import (
	"log/slog"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// pgExpired puts n records into the table that are due for a purge.
func (f *pgFixture) pgExpired(t *testing.T, n int) {
	t.Helper()
	f.exec(t, f.pgInsert("(SELECT sha256(n::text::bytea) AS id FROM generate_series(1, $1::integer) AS n) AS s",
		map[string]string{"valid_until": pgNow, "due_at": pgNow}), n)
}

// left returns how many records there are, without the emptied rows of released ones.
func (f *pgFixture) left(t *testing.T) int {
	t.Helper()
	return pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.records()+" WHERE valid_until > 0")
}

// TestPostgresPurgesWhileAnEngineUsesIt: the store deletes expired records while an
// engine uses it, again and again, and after a failure, which is logged; without an
// engine it does not.
func TestPostgresPurgesWhileAnEngineUsesIt(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	var log pgLog
	f.Config.Logger, f.Config.PurgeEvery = slog.New(slog.NewTextHandler(&log, nil)), time.Second
	f.pgExpired(t, 5)
	engine, err := reprise.New(f.Leased(t), reprise.Config{})
	labtest.Must(t, err)
	if n := f.left(t); n != 5 {
		t.Errorf("%d of 5 records are left before the engine is used", n)
	}
	res, err := engine.Begin(t.Context(), reprise.Operation{Scope: "tenant", Key: "k"})
	labtest.Must(t, err)
	labtest.Must(t, res.Attempt.Release())
	empty := func() bool { return f.left(t) == 0 }
	labtest.Eventually(t, "the first purge", empty)
	f.exec(t, "ALTER TABLE "+f.records()+" RENAME TO away")
	labtest.Eventually(t, "a failure is logged", func() bool { return log.contains("purge failed") })
	f.exec(t, "ALTER TABLE "+f.name("away")+" RENAME TO reprise_records")
	f.pgExpired(t, 5)
	labtest.Eventually(t, "a purge after the failure", empty)
	labtest.Must(t, engine.Close(t.Context()))
}
