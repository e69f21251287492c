package reprisepg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/core/store"
)

// Migration is one step of the schema. Its SQL may be given to another tool, and
// records itself as applied, so that [Migrate] and Check know of it. It does not create
// the schema.
type Migration struct {
	Version int    // from 1, without gaps
	Name    string // such as "0001_records"
	SQL     string // several statements, to run in one transaction
	Down    string // undoes SQL, in one transaction; the first step's deletes every record
}

// Goose returns the migration as a file for goose (github.com/pressly/goose), with both
// directions. Atlas, golang-migrate and others take SQL and Down as they are.
func (m Migration) Goose() string {
	const begin, end = "-- +goose StatementBegin\n", "-- +goose StatementEnd\n"
	return "-- +goose Up\n" + begin + m.SQL + end + "\n-- +goose Down\n" + begin + m.Down + end
}

// Migrations returns every step of the schema for c, in order. The error wraps
// ErrInvalid.
func Migrations(c Config) ([]Migration, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := newNames(c)
	const folder = "sql/migrations"
	files, err := fs.Glob(sqlFiles, folder+"/*.sql")
	if err != nil {
		return nil, err
	}
	list := make([]Migration, len(files))
	for i, file := range files {
		base := strings.TrimPrefix(file, folder+"/")
		list[i] = Migration{
			Version: i + 1,
			Name:    strings.TrimSuffix(base, ".sql"),
			SQL:     s.fill(readSQL(file)),
			Down:    s.fill(readSQL(folder + "/down/" + base)),
		}
	}
	return list, nil
}

// Grants returns the statements that let role run the stores and nothing else: it cannot
// change the schema. Role is quoted. The error wraps ErrInvalid.
func Grants(c Config, role string) (string, error) {
	c, err := c.withDefaults()
	if err != nil {
		return "", err
	}
	s, to := newNames(c), " TO "+pgx.Identifier{role}.Sanitize()+";\n"
	return "GRANT USAGE ON SCHEMA " + pgx.Identifier{c.Schema}.Sanitize() + to +
		"GRANT SELECT, INSERT, UPDATE, DELETE ON " + s.records + to +
		"GRANT EXECUTE ON FUNCTION " + strings.Join(s.functions, ", ") + to +
		"GRANT SELECT ON " + s.migrations + to, nil
}

// Beginner begins a transaction. A [pgxpool.Pool], a [pgx.Conn] and a [pgx.Tx] are
// such.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Migrate brings the schema of c up to the version of this release, in one transaction,
// and creates the schema itself if it is missing. Any number of processes may call it at
// once: one does the work and the others wait. It needs a role that may create tables;
// the stores need only what [Grants] gives. A schema that is newer than this release
// stays as it is, with a warning to [Config.Logger]: a process of this release may start
// again while the next one is rolled out, and its functions are still there. Where they
// are not, the error is ErrMisconfigured. A config that is invalid is ErrInvalid, and so
// is a db that is nil.
func Migrate(ctx context.Context, db Beginner, c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	list, err := Migrations(c)
	if err != nil {
		return err
	}
	if pool, isPool := db.(*pgxpool.Pool); db == nil || isPool && pool == nil {
		return invalid("the pool is nil")
	}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return migrate(ctx, tx, c, list) })
	if err == nil || errors.Is(err, store.ErrMisconfigured) {
		return err
	}
	return fail("migrate", err)
}

// MigrateSQL is [Migrate] for a *sql.DB over pgx's driver.
func MigrateSQL(ctx context.Context, db *sql.DB, c Config) error {
	if db == nil {
		return invalid("the *sql.DB is nil")
	}
	session, err := database{sql: db}.acquire(ctx, "migrate")
	if err != nil {
		return err
	}
	defer session.release()
	return session.do(func(conn *pgx.Conn) error { return Migrate(ctx, conn, c) })
}

func migrate(ctx context.Context, tx pgx.Tx, c Config, list []Migration) error {
	s := newNames(c)
	lock := fnv.New64a()
	_, _ = lock.Write([]byte("reprise migrate " + s.lock))
	// No parameters, hence the simple protocol: it works in every mode and behind every
	// pooler.
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock("+strconv.FormatInt(int64(lock.Sum64()), 10)+")"); err != nil { //nolint:gosec // any 64 bits do
		return err
	}
	found, err := readSchema(ctx, tx, c, s, len(list))
	switch finding, noticed := found.finding(); {
	case err != nil:
		return err
	case found.applied < found.known:
	case noticed && finding.Severity == store.Unsafe:
		return fmt.Errorf("%w: postgres: migrate: %s", store.ErrMisconfigured, finding.Detail)
	case noticed:
		logWarning(ctx, c.Logger, finding)
	}
	if found.applied == 0 {
		if err := createSchema(ctx, tx, c); err != nil {
			return err
		}
	}
	for _, m := range list[min(found.applied, len(list)):] {
		if _, err := tx.Exec(ctx, m.SQL); err != nil {
			return err
		}
	}
	return nil
}

// createSchema creates the schema if it is missing. IF NOT EXISTS asks for the
// privilege even where there is nothing to do.
func createSchema(ctx context.Context, tx pgx.Tx, c Config) error {
	var exists bool
	err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", pgx.QueryExecModeExec, c.Schema).Scan(&exists)
	if err != nil || exists {
		return err
	}
	_, err = tx.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{c.Schema}.Sanitize())
	return err
}

// Version returns which version the schema of c has, out of [Migrations]; 0 means that
// there is none, or that this role cannot see it. A config that is invalid is ErrInvalid.
func Version(ctx context.Context, db Beginner, c Config) (version int, err error) {
	c, err = c.withDefaults()
	if err != nil {
		return 0, err
	}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		version, err = appliedVersion(ctx, tx, c, newNames(c))
		return err
	})
	if err != nil {
		return 0, fail("version", err)
	}
	return version, nil
}

// querier is what a connection and a transaction have in common.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// schema is what a database has of the schema of a table.
type schema struct {
	applied, known int
	lacking        bool // at a version that this release knows or a newer one: a function that it calls
}

func readSchema(ctx context.Context, q querier, c Config, s names, known int) (schema, error) {
	found := schema{known: known}
	var err error
	if found.applied, err = appliedVersion(ctx, q, c, s); err != nil || found.applied < known {
		return found, err
	}
	err = q.QueryRow(ctx, "SELECT bool_or(to_regprocedure(f) IS NULL) FROM unnest($1::text[]) AS f",
		pgx.QueryExecModeExec, s.signatures).Scan(&found.lacking)
	return found, err
}

// finding judges the schema. It reports false for the one of this release.
func (s schema) finding() (store.Finding, bool) {
	f := store.Finding{Code: "schema-version", Severity: store.Unsafe}
	switch {
	case s.applied == 0:
		f.Detail = "the tables do not exist, or this role cannot see them; run reprisepg.Migrate, or apply what reprisepg.Migrations returns"
	case s.applied < s.known:
		f.Detail = fmt.Sprintf("the schema has version %d and this release needs %d; run reprisepg.Migrate, or apply what reprisepg.Migrations returns", s.applied, s.known)
	case s.lacking:
		f.Detail = fmt.Sprintf("the schema has version %d and lacks a function that this release calls; unless another release uses it, drop its tables and functions and run reprisepg.Migrate", s.applied)
	case s.applied > s.known:
		f.Severity = store.Warning
		f.Detail = fmt.Sprintf("the schema has version %d, newer than the %d that this release knows", s.applied, s.known)
	default:
		return f, false
	}
	return f, true
}

// appliedVersion reads which version the schema has; 0 means that there is none.
func appliedVersion(ctx context.Context, q querier, c Config, s names) (int, error) {
	var exists bool
	err := q.QueryRow(ctx,
		"SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2)",
		pgx.QueryExecModeExec, c.Schema, c.Table+"_migrations").Scan(&exists)
	if err != nil || !exists {
		return 0, err
	}
	var version int
	err = q.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM "+s.migrations, pgx.QueryExecModeExec).Scan(&version)
	return version, err
}
