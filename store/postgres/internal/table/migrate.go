package table

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Migration is one step of the schema.
type Migration struct {
	Version        int
	Name, Up, Down string
}

// Migrations returns every step of the schema, in order.
func Migrations(o Options) ([]Migration, error) {
	n := NewNames(o)
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
			Up:      n.fill(readSQL(sqlFiles, file)),
			Down:    n.fill(readSQL(sqlFiles, folder+"/down/"+base)),
		}
	}
	return list, nil
}

// Grants returns the GRANT statements for a role that runs the stores.
func Grants(o Options, role string) string {
	n, to := NewNames(o), " TO "+pgx.Identifier{role}.Sanitize()+";\n"
	return "GRANT USAGE ON SCHEMA " + pgx.Identifier{o.Schema}.Sanitize() + to +
		"GRANT SELECT, INSERT, UPDATE, DELETE ON " + n.records + to +
		"GRANT EXECUTE ON FUNCTION " + strings.Join(n.functions, ", ") + to +
		"GRANT SELECT ON " + n.migrations + to
}

// beginner begins a transaction.
type beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Migrate brings the schema up to the version of this release.
func Migrate(ctx context.Context, db beginner, o Options) error {
	list, err := Migrations(o)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return migrateIn(ctx, tx, o, list) })
	if err == nil || errors.Is(err, store.ErrMisconfigured) {
		return err
	}
	return wire.Fail("migrate", err)
}

// needs adds, to an error about a missing privilege, the privilege that a step of a
// migration needs. Grants does not include it.
func needs(tx pgx.Tx, err error, right string) error {
	if !wire.HasCode(err, wire.CodeNoPrivilege) {
		return err
	}
	return fmt.Errorf("%w: postgres: migrate: %s; the role that migrates needs more privileges than that of the service: GRANT %s TO %s, or migrate as the owner",
		store.ErrMisconfigured, err.Error(), right, pgx.Identifier{tx.Conn().Config().User}.Sanitize())
}

func migrateIn(ctx context.Context, tx pgx.Tx, o Options, list []Migration) error {
	n := NewNames(o)
	// At a stricter level, the snapshot would be older than the lock, and miss what another
	// process has just migrated.
	if _, err := tx.Exec(ctx, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"); err != nil {
		return err
	}
	// Without parameters, pgx uses the simple protocol, which works in every mode and behind
	// every pooler.
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock("+strconv.FormatInt(n.lock("migrate"), 10)+")"); err != nil {
		return err
	}
	found, err := readSchema(ctx, tx, &n, len(list))
	switch finding, noticed := found.finding(); {
	case err != nil:
		return needs(tx, err, "SELECT ON "+n.migrations)
	case found.applied < found.known:
	case noticed && finding.Severity == store.Unsafe:
		return fmt.Errorf("%w: postgres: migrate: %s", store.ErrMisconfigured, finding.Detail)
	case noticed:
		logWarning(ctx, o.Logger, finding)
	}
	if found.applied == 0 {
		if err := createSchema(ctx, tx, o); err != nil {
			return err
		}
	}
	for _, m := range list[min(found.applied, len(list)):] {
		if _, err := tx.Exec(ctx, m.Up); err != nil {
			return needs(tx, err, "CREATE ON SCHEMA "+pgx.Identifier{o.Schema}.Sanitize())
		}
	}
	return nil
}

// createSchema creates the schema if it is missing. CREATE SCHEMA IF NOT EXISTS would
// need the privilege even if the schema exists.
func createSchema(ctx context.Context, tx pgx.Tx, o Options) error {
	var exists bool
	err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", pgx.QueryExecModeExec, o.Schema).Scan(&exists)
	if err != nil || exists {
		return err
	}
	_, err = tx.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{o.Schema}.Sanitize())
	return needs(tx, err, "CREATE ON DATABASE "+pgx.Identifier{tx.Conn().Config().Database}.Sanitize())
}

// Version returns which version the schema has; 0 means that there is none.
func Version(ctx context.Context, db beginner, o Options) (version int, err error) {
	n := NewNames(o)
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		version, err = appliedVersion(ctx, tx, &n)
		return err
	})
	if err != nil {
		return 0, wire.Fail("version", err)
	}
	return version, nil
}
