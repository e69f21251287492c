package reprisepg

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
)

// Migrations returns every step of the schema for c, in order. The statements of each
// belong in one transaction, and do not create the schema of PostgreSQL. The error wraps
// ErrInvalid.
func Migrations(c Config) ([]store.Migration, error) {
	n, _, err := c.options()
	if err != nil {
		return nil, err
	}
	return newDialect(&n).MigrationsOf(n.table), nil
}

// Grants returns the GRANT statements for a role that runs the stores: the role can read
// and write records, and cannot change the schema. Grants quotes the role. The error
// wraps ErrInvalid.
func Grants(c Config, role string) (string, error) {
	n, _, err := c.options()
	if err != nil {
		return "", err
	}
	to := " TO " + pgx.Identifier{role}.Sanitize() + ";\n"
	return "GRANT USAGE ON SCHEMA " + pgx.Identifier{n.schema}.Sanitize() + to +
		"GRANT SELECT, INSERT, UPDATE, DELETE ON " + n.records + to +
		"GRANT EXECUTE ON FUNCTION " + strings.Join(n.functions, ", ") + to +
		"GRANT SELECT ON " + n.migrations + to, nil
}

// Migrate brings the table up to the version of this release, in one transaction, and
// creates its schema if that is missing. Any number of processes may call it at once,
// while others use the table: one does the work, and the rest wait until ctx ends. It
// needs a role that may create tables; if the table has the version of this release, only
// the rights of [Grants].
//
// Migrate leaves a schema that is newer than this release as it is, and warns
// [Config.Logger]: a process of this release may restart while the next one is rolled
// out. If this release cannot use it, the error is ErrMisconfigured.
func Migrate[P Pool](ctx context.Context, db P, c Config) error {
	t, err := newTable(databaseOf(db), c)
	if err != nil {
		return err
	}
	return t.Migrate(ctx)
}

// SchemaVersion returns the version of the schema of c: the Version of the last
// [store.Migration] that was applied. 0 means that there is none.
func SchemaVersion[P Pool](ctx context.Context, db P, c Config) (int, error) {
	t, err := newTable(databaseOf(db), c)
	if err != nil {
		return 0, err
	}
	return t.Version(ctx)
}
