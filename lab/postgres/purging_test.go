package postgres

import (
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestPostgresPurgesWhileAnEngineUsesIt: the store deletes expired records while an
// engine uses it; without an engine it does not.
func TestPostgresPurgesWhileAnEngineUsesIt(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	f.Config.PurgeEvery = time.Second
	f.exec(t, f.pgInsert("(SELECT sha256(n::text::bytea) AS id FROM generate_series(1, 5) AS n) AS s", map[string]string{"valid_until": pgNow, "due_at": pgNow}))
	left := func() int {
		return pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.records()+" WHERE valid_until > 0") // a released one leaves an empty row
	}
	engine, err := reprise.New(f.Leased(t), reprise.Config{})
	labtest.Must(t, err)
	if n := left(); n != 5 {
		t.Errorf("%d of 5 records are left before the engine is used", n)
	}
	res, err := engine.Begin(t.Context(), reprise.Operation{Scope: "tenant", Key: "k"})
	labtest.Must(t, err)
	labtest.Must(t, res.Attempt.Release())
	labtest.Eventually(t, "the first purge", func() bool { return left() == 0 })
	labtest.Must(t, engine.Close(t.Context()))
}
