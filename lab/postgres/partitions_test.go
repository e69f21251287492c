package postgres

import (
	"os"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresConformanceOfPartitions: both stores keep the contract over a table that is
// partitioned by the hash of the ID, as docs/engineering/growth.md describes, and their
// check finds nothing to say about it. With -short a record's life stands for the suite.
func TestPostgresConformanceOfPartitions(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	partitioned := func(tb testing.TB, conns int32) *pgFixture {
		f := pgSetup(tb, server, labtest.MaxConns(conns))
		f.partition(tb)
		return f
	}
	t.Run("leased", func(t *testing.T) {
		t.Parallel()
		labtest.Breadth(t, "runs of a suite over a further deployment")
		storetest.Run(t, func(tb testing.TB) storetest.Fixture { return pgSuite(tb, partitioned(tb, 4)) })
	})
	t.Run("the records stay, and the role gets its privileges again", func(t *testing.T) {
		t.Parallel()
		f := pgSetup(t, server)
		limited := f.limited(t, server)
		grants, err := reprisepg.Grants(f.Config, limited.Pool.Config().ConnConfig.User)
		labtest.Must(t, err)
		f.exec(t, grants)
		r := labtest.Claimed(t, limited.Leased(t))
		f.partition(t)
		limited.finds(t, "the new table", "schema")
		f.exec(t, grants)
		limited.finds(t, "the new table with its privileges")
		labtest.WantClaim(t, limited.Leased(t), labtest.Rival(r), store.InProgress)
	})
	t.Run("check, a life on each store, and every partition is used", func(t *testing.T) {
		t.Parallel()
		f := partitioned(t, 8)
		f.finds(t, "a table in partitions")
		pgLeasedLife(t, f.Leased(t))
		f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer)")
		pgTransactionalLife(t, f, f.Transactional(t))
		for range 64 {
			labtest.Claimed(t, f.Leased(t))
		}
		if used := pgValue[int](t, f.Pool, "SELECT count(DISTINCT tableoid) FROM "+f.records()); used != 4 {
			t.Errorf("64 records are in %d partitions, want 4", used)
		}
	})
}

// partition replaces the table of a fixture by one of four partitions, as
// docs/engineering/growth.md does.
func (f *pgFixture) partition(tb testing.TB) {
	tb.Helper()
	page, err := os.ReadFile("../../docs/engineering/growth.md")
	labtest.Must(tb, err)
	_, statements, _ := strings.Cut(string(page), "```sql\n")
	statements, _, found := strings.Cut(statements, "```")
	if !found {
		tb.Fatal("docs/engineering/growth.md has no statements")
	}
	// The page means the schema of the search path, which is as before when this ends.
	f.exec(tb, strings.Replace(statements, "BEGIN;", "BEGIN; SET LOCAL search_path TO "+f.Config.Schema+";", 1))
}
