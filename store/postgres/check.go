package reprisepg

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// oldestServer is the oldest major version that this package is tested with.
const oldestServer = 15

// findingCodes are the codes of every finding.
var findingCodes = []string{
	"server-version", "in-recovery", "read-only", "synchronous-commit", "fsync", "full-page-writes", "isolation", "notices",
	"statement-cache", "statement-timeout", "idle-timeout", "transaction-timeout", "autovacuum", "schema", "privileges", "unlogged", "other-grants", "unpurged",
}

// Check checks the settings of the server as a connection of this pool sees them, the
// schema, the privileges of the role, and whether the settings of pgx suit a pooler.
func (t *table) Check(ctx context.Context) ([]store.Finding, error) {
	server, err := t.readSettings(ctx)
	if err != nil {
		return nil, err
	}
	list := server.findings()
	if server.recovery { // the store does not read the table of a standby
		return list, nil
	}
	schema, found, err := t.CheckSchema(ctx)
	if err != nil {
		return nil, err
	}
	if found {
		list = append(list, schema)
		if schema.Severity == store.Unsafe {
			return list, nil // the table or functions that the next checks need are missing
		}
	}
	table, err := t.readTable(ctx)
	if err != nil {
		return nil, err
	}
	return append(list, table.findings()...), nil
}

// query reads the one row of a query of Check.
func (t *table) query(ctx context.Context, statement string, args []any, to ...any) error {
	return t.Use(ctx, "check", func(ctx context.Context, c *connection) error {
		return c.Query(ctx, statement, func(row sqlstore.Row) error { return row.Scan(to...) }, args...)
	})
}

// settings are the settings of the server and the session, as a connection of the pool
// sees them.
type settings struct {
	version                    int
	recovery                   bool
	synchronousCommit          string
	standbys                   string
	fsync, fullPages, readOnly string
	isolation                  string
	vacuums                    bool

	statement, idle, transaction time.Duration // limits; 0 is none
	needed                       time.Duration // Config.TxTimeout, below which they should not be

	pooled   bool // a pooler is between this process and the server
	caches   bool // pgx expects the session to keep prepared statements
	observed bool
}

func (t *table) readSettings(ctx context.Context) (s settings, err error) {
	s.needed = t.options.TxTimeout
	err = t.Use(ctx, "check", func(ctx context.Context, c *connection) error {
		var (
			pid    uint32
			limits []int64 // in milliseconds
		)
		err := c.Query(ctx, `SELECT current_setting('server_version_num')::integer / 10000, pg_is_in_recovery(), pg_backend_pid(),
			current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), current_setting('fsync'),
			current_setting('full_page_writes'), current_setting('default_transaction_read_only'), current_setting('default_transaction_isolation'),
			current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean,
			(SELECT array_agg((extract(epoch FROM coalesce(current_setting(name, true), '0')::interval) * 1000)::bigint ORDER BY place)
				FROM unnest('{statement_timeout, idle_in_transaction_session_timeout, transaction_timeout}'::text[]) WITH ORDINALITY AS limits(name, place))`,
			func(row sqlstore.Row) error {
				return row.Scan(&s.version, &s.recovery, &pid,
					&s.synchronousCommit, &s.standbys, &s.fsync, &s.fullPages, &s.readOnly, &s.isolation, &s.vacuums, &limits)
			})
		for i, to := range []*time.Duration{&s.statement, &s.idle, &s.transaction} {
			if i < len(limits) {
				*to = time.Duration(limits[i]) * time.Millisecond
			}
		}
		s.pooled = pid != c.conn.PgConn().PID() // a pooler invents process IDs
		s.observed = wire.Observed(c.conn)
		switch c.conn.Config().DefaultQueryExecMode {
		case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		default:
			s.caches = true
		}
		return err
	})
	return s, err
}

// findings returns the unsafe and suspicious settings.
func (s *settings) findings() []store.Finding {
	var list sqlstore.Findings
	list.Add(s.version < oldestServer, "server-version", store.Warning,
		"PostgreSQL %d is older than %d, the oldest version this release is tested with", s.version, oldestServer)
	list.Add(s.recovery, "in-recovery", store.Unsafe,
		"the server is a standby or still recovering, so nothing can be claimed; connect to the primary, for example with target_session_attrs=read-write")
	list.Add(s.readOnly == "on", "read-only", store.Unsafe,
		"default_transaction_read_only is on, so nothing can be claimed; turn it off for this role")
	list.Add(s.synchronousCommit == "off", "synchronous-commit", store.Unsafe,
		"synchronous_commit is off: a crash loses claims and responses that were acknowledged, and their operations run again; set it to on for this role")
	list.Add(s.synchronousCommit == "local" && s.standbys != "", "synchronous-commit", store.Warning,
		"synchronous_commit is local while synchronous standbys are named: a failover loses claims and responses that were acknowledged; set it to on for this role")
	list.Add(s.fsync == "off", "fsync", store.Unsafe,
		"fsync is off: a crash of the machine loses or corrupts records; turn it on, or accept it (Config.Accept) if the storage has a durable log of its own")
	list.Add(s.fullPages == "off", "full-page-writes", store.Unsafe,
		"full_page_writes is off: a crash of the machine can corrupt records; turn it on, or accept it (Config.Accept) if the storage has a durable log of its own")
	list.Add(s.isolation != "read committed", "isolation", store.Warning,
		"default_transaction_isolation is %s, so claims that lose a race fail and are repeated; set it to read committed for this role", s.isolation)
	list.Add(s.standbys != "" && !s.observed, "notices", store.Warning,
		"synchronous standbys are named and the pool was made without ObserveNotices, so a commit whose wait for a standby was cancelled looks confirmed; call reprisepg.ObserveNotices before the pool is made")
	list.Add(s.pooled && s.caches, "statement-cache", store.Warning,
		"a pooler is in between, and the pool's DefaultQueryExecMode expects sessions to keep prepared statements; if the pooler is in transaction mode, use default_query_exec_mode=exec")
	ends := func(limit time.Duration) bool { return limit > 0 && limit < s.needed }
	list.Add(ends(s.statement), "statement-timeout", store.Warning,
		"statement_timeout is %v, below the %v of Config.TxTimeout: the server cancels a statement of a handler, or one that waits for a lock, and the attempt fails; raise it for this role", s.statement, s.needed)
	list.Add(ends(s.idle), "idle-timeout", store.Warning,
		"idle_in_transaction_session_timeout is %v, below the %v of Config.TxTimeout: the server ends the transaction of a handler that does something else for so long, such as a call of another service, and its effects are undone; raise it for this role", s.idle, s.needed)
	list.Add(ends(s.transaction), "transaction-timeout", store.Warning,
		"transaction_timeout is %v, below the %v of Config.TxTimeout: the server ends the transaction of a handler that lasts longer, and its effects are undone; raise it for this role", s.transaction, s.needed)
	list.Add(!s.vacuums, "autovacuum", store.Warning,
		"autovacuum or track_counts is off: the table grows without end; turn both on")
	return list
}

// tableState is the description of the table in the catalogue.
type tableState struct {
	name       string
	unlogged   bool
	unvacuumed bool     // autovacuum leaves the table out
	missing    []string // privileges
	others     string   // grantees, quoted and separated by commas
	overdue    int64    // days since the oldest record should have been purged
}

func (t *table) readTable(ctx context.Context) (tableState, error) {
	var (
		n                                 = &t.names
		state                             = tableState{name: n.records}
		read, write, update, remove, call bool
	)
	err := t.query(ctx, `SELECT (SELECT relpersistence <> 'p' FROM pg_class WHERE oid = $1::text::regclass),
		EXISTS (SELECT FROM pg_class, pg_options_to_table(reloptions) WHERE oid = $1::text::regclass AND option_name = 'autovacuum_enabled' AND NOT option_value::boolean),
		has_table_privilege($1, 'SELECT'), has_table_privilege($1, 'INSERT'),
		has_table_privilege($1, 'UPDATE'), has_table_privilege($1, 'DELETE'),
		(SELECT bool_and(has_function_privilege(f, 'EXECUTE')) FROM unnest($2::text[]) AS f)`,
		[]any{n.records, n.signatures}, &state.unlogged, &state.unvacuumed, &read, &write, &update, &remove, &call)
	for _, p := range []struct {
		granted bool
		name    string
	}{
		{read, "SELECT on " + n.records},
		{write, "INSERT on " + n.records},
		{update, "UPDATE on " + n.records},
		{remove, "DELETE on " + n.records},
		{call, "EXECUTE on the functions of " + n.records},
	} {
		if !p.granted {
			state.missing = append(state.missing, p.name)
		}
	}
	if err == nil && len(state.missing) == 0 {
		err = t.query(ctx, t.statements.others, []any{n.migrations}, &state.others)
	}
	if err == nil && len(state.missing) == 0 {
		err = t.query(ctx, t.statements.unpurged, nil, &state.overdue) // no row means that nothing is due
	}
	return state, err
}

// findings returns the unsafe and suspicious properties of the table.
func (t *tableState) findings() []store.Finding {
	var list sqlstore.Findings
	list.Add(t.unlogged, "unlogged", store.Unsafe,
		"the table is unlogged or temporary: a crash empties it, and operations run again; make it permanent with ALTER TABLE … SET LOGGED")
	list.Add(t.unvacuumed, "autovacuum", store.Warning,
		"autovacuum_enabled is off for the table, so it grows without end; RESET (autovacuum_enabled)")
	list.Add(t.others != "", "other-grants", store.Warning,
		"%s may read or change the records, which contain responses; unless a service needs that, REVOKE ALL ON %s FROM %s", t.others, t.name, t.others)
	list.Add(t.overdue > 0, "unpurged", store.Warning,
		"records have been due for a purge for %d days: the table grows, and responses stay longer than their retention; see in the logs of the services why their purges fail, or whether Config.PurgeEvery turns them off, and delete what is due with reprise purge", t.overdue)
	list.Add(len(t.missing) > 0, "privileges", store.Unsafe, "the role lacks %s; give it what reprisepg.Grants returns", strings.Join(t.missing, ", "))
	return list
}

// prove checks st, and tries every operation of it on a new record: the catalogue does
// not show the effects of policies of row-level security, triggers and missing functions.
func (t *table) prove(ctx context.Context, st sqlstore.Checked) error {
	if err := t.Table.Prove(ctx, st, t.options.accept...); err != nil {
		return fmt.Errorf("%w%s", err, t.rowSecurityAdvice(ctx))
	}
	return nil
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
