package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// pgFormer takes a fixture back to the schema of the former release, version 2.
func pgFormer(t *testing.T, f *pgFixture) {
	t.Helper()
	list, err := reprisepg.Migrations(f.Config)
	pgWant(t, "Migrations", err, nil)
	for i := len(list) - 1; i >= 2; i-- {
		f.exec(t, list[i].Down)
	}
}

// TestPostgresMigrationChangesTheCatalogueOnly: the step from schema 2 reads and writes
// no row, whatever is in them, drops every CHECK and keeps the records; back again the
// former release finds what it had.
func TestPostgresMigrationChangesTheCatalogueOnly(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	pgFormer(t, f)
	r := pgClaim()
	pgClaimV1(t, f, r)
	if !pgValue[bool](t, f.Pool, "SELECT "+f.name("reprise_records_complete_v1")+"($1, $2, 'answer', 60000000)", r.ID[:], r.Owner[:]) {
		t.Fatal("not completed")
	}
	file := func() int64 {
		return pgValue[int64](t, f.Pool, "SELECT pg_relation_filenode($1::regclass)::bigint", f.records())
	}
	checks := func() int64 {
		return pgValue[int64](t, f.Pool, "SELECT count(*) FROM pg_constraint WHERE conrelid = $1::regclass AND contype = 'c'", f.records())
	}
	before := file()
	if n := checks(); n != 5 {
		t.Errorf("schema 2 has %d checks", n)
	}
	for range 2 {
		pgWant(t, "Migrate", reprisepg.Migrate(t.Context(), f.Pool, f.Config), nil)
		if n := checks(); n != 0 || file() != before {
			t.Errorf("%d checks are left; the table has the file %d after %d", n, file(), before)
		}
		got := pgMustClaim(t, f.Leased(t), pgRival(r), reprise.Completed)
		if string(got.Payload) != "answer" {
			t.Errorf("replayed %q", got.Payload)
		}
		pgFormer(t, f)
		if n := checks(); n != 5 || file() != before {
			t.Errorf("back again there are %d checks; the table has the file %d after %d", n, file(), before)
		}
	}
}

// TestPostgresTableAsMigrated: without CHECK constraints a row still has a value in every
// column but the payload, an ID that no other has, and a place in the index of the purge.
func TestPostgresTableAsMigrated(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(2))
	nullable := pgValue[string](t, f.Pool, "SELECT string_agg(attname, ' ') FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attnotnull", f.records())
	if nullable != "payload" {
		t.Errorf("columns without NOT NULL: %s", nullable)
	}
	indexes := pgValue[string](t, f.Pool, `SELECT string_agg(regexp_replace(indexdef, ' (INDEX|ON) .*\(', ' ('), '; ' ORDER BY indexdef DESC) FROM pg_indexes
		WHERE schemaname = $1 AND tablename = 'reprise_records'`, f.Config.Schema)
	if indexes != "CREATE UNIQUE (id); CREATE (expires_at)" {
		t.Errorf("indexes: %s", indexes)
	}
	if _, err := f.Pool.Exec(t.Context(), "INSERT INTO "+f.name("reprise_records_migrations")+" VALUES (3)"); err == nil {
		t.Error("a migration is recorded twice")
	}
}

// TestPostgresMigrationGivesUp: behind a transaction that has read the table, the step
// from schema 2 gives up within seconds, changes nothing and says why, so that requests
// do not queue behind it for as long as a backup takes.
func TestPostgresMigrationGivesUp(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	pgFormer(t, f)
	backup, err := f.Pool.Begin(t.Context())
	pgWant(t, "begin", err, nil)
	defer func() { _ = backup.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := backup.Exec(t.Context(), "LOCK TABLE "+f.records()+" IN ACCESS SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	err = reprisepg.Migrate(t.Context(), f.Pool, f.Config)
	pgWant(t, "Migrate behind a backup", err, reprise.ErrUnavailable)
	if took := time.Since(start); took > 10*time.Second || !strings.Contains(err.Error(), "call Migrate again") {
		t.Errorf("after %v: %v", took, err)
	}
	pgClaimV1(t, f, pgClaim())
	pgWant(t, "rollback", backup.Rollback(t.Context()), nil)
	pgWant(t, "Migrate", reprisepg.Migrate(t.Context(), f.Pool, f.Config), nil)
	pgMustClaim(t, f.Leased(t), pgClaim(), reprise.Claimed)
	if own := pgValue[string](t, f.Pool, "SHOW lock_timeout"); own != "0" {
		t.Errorf("lock_timeout is %s afterwards", own)
	}
}

// TestPostgresSessionsOutliveMigrations: statements that sessions prepared go on after
// the schema went back and came up again, alone, in batches and in transactions; on the
// former schema every claim is refused.
func TestPostgresSessionsOutliveMigrations(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(8))
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer)")
	leased, transactional := f.Leased(t), f.Transactional(t)
	live := func() {
		pgTogether(manyCallers, func(int) {
			r := pgClaim()
			pgMustClaim(t, leased, r, reprise.Claimed)
			pgWant(t, "complete", pgComplete(t, leased, r, pgBody), nil)
			pgMustClaim(t, leased, pgRival(r), reprise.Completed)
		})
		f.exec(t, "TRUNCATE "+f.name("effects"))
		pgTransactionalLife(t, f, transactional)
		f.exec(t, "DELETE FROM "+f.records())
		pgLeasedLife(t, leased)
	}
	live()
	pgFormer(t, f)
	pgTogether(manyCallers, func(int) {
		_, err := leased.Claim(t.Context(), pgClaim())
		pgWant(t, "claim on the former schema", err, reprise.ErrMisconfigured)
	})
	pgWant(t, "Migrate", reprisepg.Migrate(t.Context(), f.Pool, f.Config), nil)
	live()
}
