package postgres

import (
	"crypto/rand"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestPostgresLogAndRowOfANewKey (P7): how many bytes of the server's log a new key
// writes, beside a bare INSERT and UPDATE of as much, and how many its row has, indexes
// included. Nine of ten completions stay on their page and out of the indexes. Whole
// pages, which the server adds to the log after a checkpoint, do not count: their number
// depends on when it is.
func TestPostgresLogAndRowOfANewKey(t *testing.T) {
	t.Parallel()
	const most = 1050
	server := servers.StartPostgres(t, "wal_level=minimal", "max_wal_senders=0", "autovacuum=off", "checkpoint_timeout=1d", "full_page_writes=off")
	f := pgSetup(t, server)
	f.exec(t, "CREATE TABLE "+f.name("bare")+" (id bytea PRIMARY KEY, owner bytea, fingerprint bytea, payload bytea)")
	insert := "INSERT INTO " + f.name("bare") + " VALUES ($1::bytea, $2::bytea, $3::bytea, '')"
	update := "UPDATE " + f.name("bare") + " SET payload = $2::bytea WHERE id = $1::bytea"

	st := f.Leased(t)
	leased := pgLogOf(t, f, func() {
		labtest.Must(t, labtest.Complete(t, st, labtest.Claimed(t, st), pgBody))
	})
	hot := -1.0
	labtest.Eventually(t, "the statistics arrive", func() bool {
		f.Pool.Reset() // a session reports them when it ends
		hot = pgValue[float64](t, f.Pool, "SELECT coalesce(max(n_tup_hot_upd::float8 / n_tup_upd), -1) FROM pg_stat_user_tables WHERE relid = $1::regclass AND n_tup_upd > 500", f.records())
		return hot >= 0
	})
	// Pages in use, not the size of the file, to which a server adds empty pages.
	row := pgValue[float64](t, f.Pool, "SELECT (count(DISTINCT (ctid::text::point)[0]) * current_setting('block_size')::bigint + pg_indexes_size($1::regclass))::float8 / count(*) FROM "+f.records(), f.records())
	if row > 700 || hot < 0.9 {
		t.Errorf("a row has %.0f bytes, and %.1f %% of the updates are HOT; want at most 700 and at least 90 %%", row, 100*hot)
	}
	t.Logf("a row has %.0f bytes, and %.1f %% of the updates are HOT", row, 100*hot)
	floor := pgLogOf(t, f, func() {
		var id store.ID
		_, _ = rand.Read(id[:])
		f.exec(t, insert, id[:], id[:16], id[:])
		f.exec(t, update, id[:], []byte(pgBody))
	})
	t.Logf("bytes of a new key: %d, of two bare statements %d", leased, floor)
	if leased > most {
		t.Errorf("a new key writes %d bytes; want at most %d", leased, most)
	}
}

// pgLogOf returns how many bytes of the log an operation writes, on average.
func pgLogOf(t *testing.T, f *pgFixture, operation func()) int64 {
	t.Helper()
	const times = 500
	operation()
	before := pgValue[string](t, f.Pool, "SELECT pg_current_wal_insert_lsn()::text")
	for range times {
		operation()
	}
	return pgValue[int64](t, f.Pool, "SELECT (pg_current_wal_insert_lsn() - $1::pg_lsn)::bigint", before) / times
}
