package reprisepg

import (
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
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
		Missing:  func(err error) bool { return hasCode(err, codeNoTable) },
		Settings: settings,
		Classify: classify,
		Retires:  retires,
		ReadOnly: func(err error) bool { return hasCode(err, codeReadOnly) },
		Advice:   advice,
	}
}
