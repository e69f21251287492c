package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
)

// BenchmarkPostgresClaims measures a claim of the leased store by what it finds, over one
// connection, with the statements and the bytes of the server's log that it takes.
//
//	go test ./lab/postgres -run '^$' -bench PostgresClaims -benchtime 2000x
func BenchmarkPostgresClaims(b *testing.B) {
	const brief = time.Millisecond
	server := servers.StartPostgres(b, "autovacuum=off", "checkpoint_timeout=1d")
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
		statements := &pgStatements{}
		f := pgSetup(b, server, labtest.MaxConns(1), labtest.ExecMode(mode), statements.option)
		again := pgClaim()
		lapsed, over := pgClaim(), pgClaim()
		lapsed.Lease, over.Lease, over.Retention = brief, brief, brief
		done := pgClaim()
		pgMustClaim(b, f.Leased(b), done, store.Claimed)
		pgWant(b, "complete", pgComplete(b, f.Leased(b), done, pgBody), nil)
		for _, bench := range []struct {
			name string
			next func() store.ClaimRequest
			want store.Outcome
			ends bool // the last claim, before the next
		}{
			{"new", pgClaim, store.Claimed, false},
			{"replay", func() store.ClaimRequest { return pgRival(done) }, store.Completed, false},
			{"again", func() store.ClaimRequest { return again }, store.Claimed, false},
			{"takeover", func() store.ClaimRequest { return pgRival(lapsed) }, store.Claimed, true},
			{"expired", func() store.ClaimRequest { return pgRival(over) }, store.Claimed, true},
		} {
			b.Run(bench.name+"/"+mode.String(), func(b *testing.B) {
				st := f.Leased(b)
				pgMustClaim(b, st, bench.next(), bench.want)
				sent, from := statements.count(), pgValue[string](b, f.Pool, "SELECT pg_current_wal_insert_lsn()::text")
				b.ResetTimer()
				for range b.N {
					if bench.ends {
						b.StopTimer()
						pgPass(2 * brief)
						b.StartTimer()
					}
					pgMustClaim(b, st, bench.next(), bench.want)
				}
				b.StopTimer()
				b.ReportMetric(float64(statements.count()-sent-1)/float64(b.N), "statements/op")
				b.ReportMetric(float64(pgValue[int64](b, f.Pool, "SELECT (pg_current_wal_insert_lsn() - $1::pg_lsn)::bigint", from))/float64(b.N), "WAL-B/op")
			})
		}
	}
}
