package postgres

import (
	"crypto/rand"
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/jackc/pgx/v5"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/servers"
)

// BenchmarkPostgres measures new operations and replays of both stores beside their
// floors: two bare statements on one row, one SELECT by primary key, and a transaction of
// the handler's own, each sent in the same way.
func BenchmarkPostgres(b *testing.B) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeCacheStatement} {
		b.Run("mode="+mode.String(), func(b *testing.B) { benchPostgres(b, mode) })
	}
}

func benchPostgres(b *testing.B, mode pgx.QueryExecMode) {
	f := pgSetup(b, servers.SharedPostgres(b), labtest.ExecMode(mode))
	f.Config.ExecMode = mode
	f.exec(b, "CREATE TABLE "+f.name("bare")+" (id bytea PRIMARY KEY, payload bytea)")
	f.exec(b, "CREATE TABLE "+f.name("effects")+" (n integer)")
	leased, transactional := f.Leased(b), f.Transactional(b)
	done := pgClaim()
	pgMustClaim(b, leased, done, reprise.Claimed)
	pgWant(b, "complete", pgComplete(b, leased, done, pgBody), nil)
	f.exec(b, "INSERT INTO "+f.name("bare")+" VALUES ($1, $2)", done.ID[:], []byte(pgBody))
	insert := "INSERT INTO " + f.name("bare") + " VALUES ($1::bytea, NULL)"
	update := "UPDATE " + f.name("bare") + " SET payload = $2::bytea WHERE id = $1::bytea"
	lookup := "SELECT payload FROM " + f.name("bare") + " WHERE id = $1::bytea"
	effect := "INSERT INTO " + f.name("effects") + " VALUES (1)"

	b.Run("new/floor=two statements", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var id reprise.ID
			_, _ = rand.Read(id[:])
			f.exec(b, insert, id[:])
			f.exec(b, update, id[:], []byte(pgBody))
		}
	})
	b.Run("new/store=postgres", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r := pgClaim()
			pgMustClaim(b, leased, r, reprise.Claimed)
			pgWant(b, "complete", pgComplete(b, leased, r, pgBody), nil)
		}
	})
	b.Run("replay/floor=select", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if got := pgValue[[]byte](b, f.Pool, lookup, done.ID[:]); len(got) != len(pgBody) {
				b.Fatal("another row")
			}
		}
	})
	b.Run("replay/store=postgres", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pgMustClaim(b, leased, done, reprise.Completed)
		}
	})
	b.Run("effect/floor=transaction", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			err := pgx.BeginFunc(b.Context(), f.Pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(b.Context(), effect)
				return err
			})
			pgWant(b, "transaction", err, nil)
		}
	})
	b.Run("effect/store=postgres-tx", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r := pgClaim()
			pgMustClaim(b, transactional, r, reprise.Claimed)
			tx := pgTx(b, transactional, r)
			if _, err := tx.Exec(b.Context(), effect); err != nil {
				b.Fatal(err)
			}
			pgWant(b, "complete", pgComplete(b, transactional, r, pgBody), nil)
		}
	})
	b.Run("replay/store=postgres-tx", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pgMustClaim(b, transactional, done, reprise.Completed)
		}
	})
}
