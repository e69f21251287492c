package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
)

// querier is the common interface of a connection and a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// schema is the state of the schema of a table in a database.
type schema struct {
	applied, known int
	lacking        bool // a function that this release calls is missing, although applied ≥ known
}

func readSchema(ctx context.Context, q querier, n *Names, known int) (schema, error) {
	found := schema{known: known}
	var err error
	if found.applied, err = appliedVersion(ctx, q, n); err != nil || found.applied < known {
		return found, err
	}
	err = q.QueryRow(ctx, "SELECT bool_or(to_regprocedure(f) IS NULL) FROM unnest($1::text[]) AS f",
		pgx.QueryExecModeExec, n.signatures).Scan(&found.lacking)
	return found, err
}

// finding returns what is wrong with the schema, and false if it is that of this release.
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
func appliedVersion(ctx context.Context, q querier, n *Names) (int, error) {
	var exists bool
	err := q.QueryRow(ctx,
		"SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2)",
		pgx.QueryExecModeExec, n.schema, n.table+"_migrations").Scan(&exists)
	if err != nil || !exists {
		return 0, err
	}
	var version int
	err = q.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM "+n.migrations, pgx.QueryExecModeExec).Scan(&version)
	return version, err
}
