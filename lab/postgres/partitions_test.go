package postgres

import (
	"fmt"
	"testing"

	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
)

// TestPostgresConformanceOfPartitions: both stores keep the contract over a table that is
// partitioned by the hash of the ID, as docs/engineering/growth.md describes, and their
// check finds nothing to say about it.
func TestPostgresConformanceOfPartitions(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	partitioned := func(tb testing.TB, conns int32) *pgFixture {
		f := pgSetup(tb, server, labtest.MaxConns(conns))
		f.partition(tb, 4)
		return f
	}
	t.Run("leased", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(tb testing.TB) storetest.Fixture { return pgSuite(partitioned(tb, 4)) })
	})
	t.Run("transactional", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(tb testing.TB) storetest.Fixture { return pgTxSuite(partitioned(tb, 16)) })
	})
	t.Run("check, and every partition is used", func(t *testing.T) {
		t.Parallel()
		f := partitioned(t, 4)
		st := f.Leased(t)
		if codes := pgFindings(t, st); len(codes) != 0 {
			t.Errorf("check finds %v", codes)
		}
		for range 64 {
			pgMustClaim(t, st, pgClaim(), store.Claimed)
		}
		used := pgValue[int](t, f.Pool, "SELECT count(DISTINCT tableoid) FROM "+f.records())
		if used != 4 {
			t.Errorf("64 records are in %d partitions, want 4", used)
		}
	})
}

// partition replaces the empty table of a fixture by one with partitions.
func (f *pgFixture) partition(tb testing.TB, n int) {
	tb.Helper()
	records := f.records()
	statements := []string{
		"ALTER TABLE " + records + " RENAME TO unpartitioned",
		"CREATE TABLE " + records + " (LIKE " + f.name("unpartitioned") + " INCLUDING ALL) PARTITION BY HASH (id)",
		"DROP TABLE " + f.name("unpartitioned"),
	}
	for i := range n {
		statements = append(statements, fmt.Sprintf(
			"CREATE TABLE %s PARTITION OF %s FOR VALUES WITH (MODULUS %d, REMAINDER %d) WITH (fillfactor = 98, autovacuum_vacuum_scale_factor = 0.02)",
			f.name(fmt.Sprintf("part_%d", i)), records, n, i,
		))
	}
	for _, s := range statements {
		if _, err := f.Pool.Exec(tb.Context(), s); err != nil {
			tb.Fatalf("%s: %v", s, err)
		}
	}
}
