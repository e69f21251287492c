package postgres

import (
	"crypto/rand"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/servers"
)

// TestPostgresLogOfANewKey (P7): how many bytes of the server's log a new key writes,
// beside a bare INSERT and UPDATE of as much. Whole pages, which the server adds after a
// checkpoint, do not count: how many there are depends on when it is.
func TestPostgresLogOfANewKey(t *testing.T) {
	t.Parallel()
	const most = 1050
	server := servers.StartPostgres(t, "wal_level=minimal", "max_wal_senders=0", "autovacuum=off", "checkpoint_timeout=1d", "full_page_writes=off")
	f := pgSetup(t, server)
	f.exec(t, "CREATE TABLE "+f.name("bare")+" (id bytea PRIMARY KEY, owner bytea, fingerprint bytea, payload bytea)")
	insert := "INSERT INTO " + f.name("bare") + " VALUES ($1::bytea, $2::bytea, $3::bytea, '')"
	update := "UPDATE " + f.name("bare") + " SET payload = $2::bytea WHERE id = $1::bytea"

	run := func(st store.Store) func() {
		return func() {
			r := pgClaim()
			pgMustClaim(t, st, r, store.Claimed)
			pgWant(t, "complete", pgComplete(t, st, r, pgBody), nil)
		}
	}
	leased := pgLogOf(t, f, run(f.Leased(t)))
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
