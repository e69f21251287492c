package reprisepg

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// oldestServer is the oldest version that this package is tested with.
const oldestServer = 15_00_00

// settings is the query of the settings that judge needs.
const settings = `SELECT name, setting FROM pg_settings WHERE name IN ('server_version_num', 'synchronous_commit', 'synchronous_standby_names', 'fsync',
		'full_page_writes', 'default_transaction_read_only', 'default_transaction_isolation', 'autovacuum', 'track_counts',
		'statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')
	UNION ALL SELECT 'recovery', CASE WHEN pg_is_in_recovery() THEN 'on' ELSE 'off' END
	UNION ALL SELECT 'process', pg_backend_pid()::text`

// judge returns the findings about the settings of a connection of the pool, and whether
// the server is a standby. It adds those of pgx, and whether a pooler is in between,
// which invents process IDs.
func (t *table) judge(_ *sqlstore.Table, on sqlstore.Conn, is map[string]string) (list sqlstore.Findings, replica bool) {
	conn := connectionOf(on).conn
	if is["process"] != strconv.FormatUint(uint64(conn.PgConn().PID()), 10) {
		is["pooler"] = "on"
	}
	if _, found := conn.PgConn().CustomData()[noteObserved]; found {
		is["notices"] = "on"
	}
	switch conn.Config().DefaultQueryExecMode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
	default:
		is["statement_cache"] = "on"
	}
	return findings(is, t.Options.TxTimeout), is["recovery"] == "on"
}

// findings returns the unsafe and suspicious settings. A transaction may last for needed.
func findings(is map[string]string, needed time.Duration) (list sqlstore.Findings) {
	version, _ := strconv.Atoi(is["server_version_num"])
	commit, standbys := is["synchronous_commit"], is["synchronous_standby_names"] != ""
	list.Add(version < oldestServer, "server-version", store.Warning,
		"PostgreSQL %d is older than %d, the oldest version this release is tested with", version/10_000, oldestServer/10_000)
	list.Add(is["recovery"] == "on", "in-recovery", store.Unsafe,
		"the server is a standby or still recovering, so nothing can be claimed; connect to the primary, for example with target_session_attrs=read-write")
	list.Add(is["default_transaction_read_only"] == "on", "read-only", store.Unsafe,
		"default_transaction_read_only is on, so nothing can be claimed; turn it off for this role")
	list.Add(commit == "off", "synchronous-commit", store.Unsafe,
		"synchronous_commit is off: a crash loses claims and responses that were acknowledged, and their operations run again; set it to on for this role")
	list.Add(commit == "local" && standbys, "synchronous-commit", store.Warning,
		"synchronous_commit is local while synchronous standbys are named: a failover loses claims and responses that were acknowledged; set it to on for this role")
	list.Add(is["fsync"] == "off", "fsync", store.Unsafe,
		"fsync is off: a crash of the machine loses or corrupts records; turn it on, or accept it (Config.Accept) if the storage has a durable log of its own")
	list.Add(is["full_page_writes"] == "off", "full-page-writes", store.Unsafe,
		"full_page_writes is off: a crash of the machine can corrupt records; turn it on, or accept it (Config.Accept) if the storage has a durable log of its own")
	list.Add(is["default_transaction_isolation"] != "read committed", "isolation", store.Warning,
		"default_transaction_isolation is %s, so claims that lose a race fail and are repeated; set it to read committed for this role", is["default_transaction_isolation"])
	list.Add(standbys && is["notices"] != "on", "notices", store.Warning,
		"synchronous standbys are named and the pool was made without ObserveNotices, so a commit whose wait for a standby was cancelled looks confirmed; call reprisepg.ObserveNotices before the pool is made")
	list.Add(is["pooler"] == "on" && is["statement_cache"] == "on", "statement-cache", store.Warning,
		"a pooler is in between, and the pool's DefaultQueryExecMode expects sessions to keep prepared statements; if the pooler is in transaction mode, use default_query_exec_mode=exec")
	for _, l := range []struct{ code, name, effect string }{
		{"statement-timeout", "statement_timeout", "cancels a statement of a handler, or one that waits for a lock, and the attempt fails"},
		{"idle-timeout", "idle_in_transaction_session_timeout", "ends the transaction of a handler that does something else for so long, such as a call of another service, and its effects are undone"},
		{"transaction-timeout", "transaction_timeout", "ends the transaction of a handler that lasts longer, and its effects are undone"},
	} {
		ms, _ := strconv.ParseInt(is[l.name], 10, 64)
		limit := time.Duration(ms) * time.Millisecond
		list.Add(limit > 0 && limit < needed, l.code, store.Warning,
			"%s is %v, below the %v of Config.TxTimeout: the server %s; raise it for this role", l.name, limit, needed, l.effect)
	}
	list.Add(is["autovacuum"] == "off" || is["track_counts"] == "off", "autovacuum", store.Warning,
		"autovacuum or track_counts is off: the table grows without end; turn both on")
	return list
}

// judgeTable returns the unsafe and suspicious properties of the table.
func (t *table) judgeTable(ctx context.Context, _ *sqlstore.Table) (list sqlstore.Findings, err error) {
	var (
		unlogged, unvacuumed bool
		missing, others      string // privileges, and quoted grantees, separated by commas
		overdue              int64  // days since the oldest record should have been purged
	)
	err = t.query(ctx, `SELECT (SELECT relpersistence <> 'p' FROM pg_class WHERE oid = $1::text::regclass),
		EXISTS (SELECT FROM pg_class, pg_options_to_table(reloptions) WHERE oid = $1::text::regclass AND option_name = 'autovacuum_enabled' AND NOT option_value::boolean),
		(SELECT coalesce(string_agg(lack, ', '), '') FROM (
			SELECT p || ' on ' || $1::text AS lack FROM unnest('{SELECT, INSERT, UPDATE, DELETE}'::text[]) AS p WHERE NOT has_table_privilege($1::text, p)
			UNION ALL SELECT 'EXECUTE on the functions of ' || $1::text FROM unnest($2::text[]) AS f HAVING NOT bool_and(has_function_privilege(f, 'EXECUTE'))
		) AS l)`,
		[]any{t.names.records, t.names.signatures}, &unlogged, &unvacuumed, &missing)
	if err == nil && missing == "" {
		err = t.query(ctx, t.statements.others, []any{t.names.migrations}, &others)
	}
	if err == nil && missing == "" {
		err = t.query(ctx, t.statements.unpurged, nil, &overdue) // no row means that nothing is due
	}
	list.Add(unlogged, "unlogged", store.Unsafe,
		"the table is unlogged or temporary: a crash empties it, and operations run again; make it permanent with ALTER TABLE … SET LOGGED")
	list.Add(unvacuumed, "autovacuum", store.Warning,
		"autovacuum_enabled is off for the table, so it grows without end; RESET (autovacuum_enabled)")
	list.Add(others != "", "other-grants", store.Warning,
		"%s may read or change the records, which contain responses; unless a service needs that, REVOKE ALL ON %s FROM %s", others, t.names.records, others)
	list.Add(overdue > 0, "unpurged", store.Warning,
		"records have been due for a purge for %d days: the table grows, and responses stay longer than their retention; see in the logs of the services why their purges fail, or whether Config.PurgeEvery turns them off, and delete what is due with reprise purge", overdue)
	list.Add(missing != "", "privileges", store.Unsafe, "the role lacks %s; give it what reprisepg.Grants returns", missing)
	return list, err
}

// query reads the one row of a query of a check.
func (t *table) query(ctx context.Context, statement string, args []any, to ...any) error {
	return t.Read(ctx, "check", func(ctx context.Context, on sqlstore.Conn) error {
		return on.Query(ctx, statement, func(row sqlstore.Row) error { return row.Scan(to...) }, args...)
	})
}

// rowSecurityAdvice returns the remedy if row-level security applies to this role.
func (t *table) rowSecurityAdvice(ctx context.Context) string {
	var (
		active bool
		role   string
	)
	err := t.query(ctx, "SELECT row_security_active($1::text::regclass), current_user::text", []any{t.names.records}, &active, &role)
	if err != nil || !active {
		return ""
	}
	return fmt.Sprintf("; row-level security applies to this role: CREATE POLICY reprise ON %s TO %s USING (true) WITH CHECK (true)",
		t.names.records, pgx.Identifier{role}.Sanitize())
}
