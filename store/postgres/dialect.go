package reprisepg

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// clock is when the transaction began, because in the extended protocol the start of the
// statement is later than its snapshot; late is the clock at the moment. Both are in
// microseconds since 1970.
const (
	clock = "(date_part('epoch', now()) * 1000000)::bigint"
	late  = "(date_part('epoch', clock_timestamp()) * 1000000)::bigint"
)

// newDialect returns the dialect of PostgreSQL for one table.
func newDialect(n *names) *sqlstore.Dialect {
	return &sqlstore.Dialect{
		Name:     storeName,
		Clock:    clock,
		Late:     late,
		Stale:    "pg_is_in_recovery()",
		Hold:     " FOR NO KEY UPDATE",
		Wait:     " FOR SHARE",
		Free:     " FOR NO KEY UPDATE SKIP LOCKED",
		Unseen:   true,
		Unique:   " ON CONFLICT (id) DO NOTHING",
		Numbered: true,
		Estimate: "SELECT CASE WHEN reltuples > 0 AND relpages > 0 THEN reltuples / relpages * (pg_relation_size(oid) / current_setting('block_size')::bigint) " +
			"ELSE 0 END::bigint FROM pg_class WHERE oid = " + n.literal() + "::regclass",
		Tables: "SELECT n.nspname || '.' || c.relname, format('%I.%I', n.nspname, c.relname) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace " +
			"WHERE c.relkind IN ('r', 'p') AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AND " +
			"(SELECT COUNT(*) FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname IN " + sqlstore.TableColumns + ") = " + sqlstore.TableColumnsCount + " ORDER BY 1 LIMIT 10",
		Quote: func(name string) string {
			schema, table, _ := strings.Cut(name, ".")
			return pgx.Identifier{schema, table}.Sanitize()
		},
		Steps:    n.steps(),
		Versions: versions,
		Calls:    "SELECT '" + strings.Join(n.signatures, "'::regprocedure, '") + "'::regprocedure",
		Alone:    n.alone,
		Missing:  func(err error) bool { return wire.HasCode(err, wire.CodeNoTable) },
		Settings: settings,
		Classify: classify,
		Retires:  retires,
		ReadOnly: func(err error) bool { return wire.HasCode(err, wire.CodeReadOnly) },
		Advice:   advice,
	}
}

// advice returns the remedy for a failure. That of a migration may be to use another
// role.
func advice(op string, err error) string {
	switch {
	case op != "migrate":
		return wire.Advice(err)
	case wire.HasCode(err, wire.CodeNoPrivilege):
		return "; migrate as the owner of the tables, or with a role that has CREATE on the schema, and on the database if the schema is missing"
	}
	return ""
}

// classify returns the sentinel for a failure of the server or of a connection.
func classify(err error, committing bool) error {
	if wire.HasCode(err, wire.CodeSerialization, wire.CodeDeadlock, wire.CodeLockTimeout) {
		return sqlstore.ErrLostRace
	}
	class := wire.Class(err)
	if errors.Is(class, store.ErrUnknown) && !committing {
		return store.ErrUnavailable
	}
	return class
}

// retires reports whether a connection is of no use after err: it is lost, its session
// has ended, or its server is read-only, as a primary is after a failover. A new
// connection may reach the new primary.
func retires(err error) bool {
	var serverErr *pgconn.PgError
	if errors.As(err, &serverErr) {
		return !wire.Undone(serverErr) || serverErr.Code == wire.CodeReadOnly
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) &&
		!errors.Is(err, sqlstore.ErrLostRace) && !sqlstore.IsResult(err)
}
