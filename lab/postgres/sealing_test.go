package postgres

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// No part of a sealed response, of the key or of the secret is in a copy of the tables,
// in their files, or in the write-ahead log.
func TestPostgresDumpHidesSealedResponses(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t) // the checkpoints of other tests remove the log of a shared one
	for _, atomic := range []bool{false, true} {
		for _, sealed := range []bool{true, false} {
			t.Run(fmt.Sprintf("atomic %t, sealed %t", atomic, sealed), func(t *testing.T) {
				t.Parallel()
				f := pgSetup(t, server)
				start := pgValue[string](t, f.Pool, "SELECT pg_current_wal_insert_lsn()::text")
				var store store.Store = f.Leased(t)
				if atomic {
					store = f.Transactional(t)
				}
				labtest.RecordPrivate(t, store, sealed).WantAbsent(t, "the dump", dumpOf(t, f, start))
			})
		}
	}
}

// dumpOf returns everything that a server keeps of a fixture's tables, and its log since
// an instant. The log may have records of other tests, too.
func dumpOf(t *testing.T, f *pgFixture, start string) []byte {
	t.Helper()
	conn, err := f.Pool.Acquire(t.Context())
	labtest.Must(t, err)
	defer conn.Release()
	f.exec(t, "CHECKPOINT")
	tables := pgValue[[]string](t, conn, "SELECT array_agg(quote_ident(schemaname) || '.' || quote_ident(tablename)) FROM pg_tables WHERE schemaname = $1", f.Config.Schema)
	var dump bytes.Buffer
	for _, table := range tables {
		_, err := conn.Conn().PgConn().CopyTo(t.Context(), &dump, "COPY "+table+" TO STDOUT (FORMAT binary)")
		labtest.Must(t, err)
		dump.Write(pgValue[[]byte](t, conn, "SELECT pg_read_binary_file(pg_relation_filepath($1::regclass))", table))
	}
	dump.Write(pgValue[[]byte](t, conn, "SELECT pg_read_binary_file('pg_wal/' || pg_walfile_name($1::pg_lsn))", start))
	return dump.Bytes()
}
