package postgres

import (
	"crypto/sha256"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// BenchmarkPostgresClaims measures a claim of the leased store by what it finds, over one
// connection: its time, the processor time of client and server, and the statements and
// the bytes of the server's log that it takes.
//
//	go test ./lab/postgres -run '^$' -bench PostgresClaims -benchtime 3000x
func BenchmarkPostgresClaims(b *testing.B) {
	server := servers.StartPostgres(b, "autovacuum=off", "checkpoint_timeout=1d")
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
		statements := &pgStatements{}
		f := pgSetup(b, server, labtest.MaxConns(1), labtest.ExecMode(mode), statements.option)
		postmaster := pgPostmaster(b, f)
		again, done := pgClaim(), pgClaim()
		pgMustClaim(b, f.Leased(b), done, store.Claimed)
		pgWant(b, "complete", pgComplete(b, f.Leased(b), done, pgBody), nil)
		there := func(i int) store.ClaimRequest {
			r := pgClaim()
			r.ID, r.Fingerprint = sha256.Sum256([]byte(strconv.Itoa(i))), store.Fingerprint{}
			return r
		}
		for _, bench := range []struct {
			name  string
			next  func(i int) store.ClaimRequest
			want  store.Outcome
			valid string // until when the records that are there are; empty: there are none
		}{
			{"new", func(int) store.ClaimRequest { return pgClaim() }, store.Claimed, ""},
			{"new and completed", func(int) store.ClaimRequest { return pgClaim() }, store.Claimed, ""},
			{"replay", func(int) store.ClaimRequest { return pgRival(done) }, store.Completed, ""},
			{"again", func(int) store.ClaimRequest { return again }, store.Claimed, ""},
			{"takeover", there, store.Claimed, "now() + interval '1 hour'"},
			{"expired", there, store.Claimed, "now()"},
		} {
			b.Run(bench.name+"/"+mode.String(), func(b *testing.B) {
				st, completes := f.Leased(b), bench.name == "new and completed"
				if bench.valid != "" {
					f.exec(b, "TRUNCATE "+f.records())
					f.exec(b, "INSERT INTO "+f.records()+` (id, version, state, attempt, fence, owner, fingerprint, lease_until, valid_until, expires_at, created_at)
						SELECT sha256(i::text::bytea), 1, 1, 1, 1, $1, $2, now(), `+bench.valid+", now() + interval '1 hour', now() FROM generate_series(0, $3::integer) AS i",
						done.Owner[:], make([]byte, len(store.Fingerprint{})), b.N)
				}
				pgMustClaim(b, st, bench.next(b.N), bench.want) // prepares the statements
				from := pgValue[string](b, f.Pool, "SELECT pg_current_wal_insert_lsn()::text")
				sent, cpu := statements.count(), pgCPU(b, postmaster)
				b.ResetTimer()
				for i := range b.N {
					r := bench.next(i)
					pgMustClaim(b, st, r, bench.want)
					if completes {
						pgWant(b, "complete", pgComplete(b, st, r, pgBody), nil)
					}
				}
				b.StopTimer()
				per := func(total float64) float64 { return total / float64(b.N) }
				b.ReportMetric(per(float64((pgCPU(b, postmaster)-cpu).Nanoseconds())/1000), "CPU-µs/op")
				b.ReportMetric(per(float64(statements.count()-sent)), "statements/op")
				b.ReportMetric(per(float64(pgValue[int64](b, f.Pool, "SELECT (pg_current_wal_insert_lsn() - $1::pg_lsn)::bigint", from))), "WAL-B/op")
			})
		}
	}
}
