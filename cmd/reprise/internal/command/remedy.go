package command

import (
	"cmp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	reprisepg "github.com/reprise-go/reprise/store/postgres"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
)

// remedy returns the lines to paste for a finding; none where no line would do.
func remedy(store *connect.Store, f *store.Finding) []string {
	if f.Code == "certificate" {
		return []string{store.CertificateLine()}
	}
	switch store.Kind {
	case connect.Redis:
		return redisRemedy(store, f)
	case connect.Postgres:
		return postgresRemedy(store, f)
	default: // those of [remedies]
	}
	if f.Code == "schema" && containsAny(f.Detail, "run Migrate, or") {
		return []string{tableLine("migrate apply", store)}
	}
	if line := remedies[f.Code]; line != "" {
		return []string{strings.ReplaceAll(line, "TABLE", cmp.Or(store.Settings.Table, reprisepg.DefaultTable))}
	}
	return nil
}

// remedies are the lines for the findings of MySQL, MariaDB, SQLite and etcd.
var remedies = map[string]string{
	"innodb-flush-log":   "SET GLOBAL innodb_flush_log_at_trx_commit = 1;",
	"sync-binlog":        "SET GLOBAL sync_binlog = 1;",
	"binlog-format":      "SET GLOBAL binlog_format = 'ROW';",
	"max-allowed-packet": "SET GLOBAL max_allowed_packet = 67108864;",
	"sql-mode":           "SET GLOBAL sql_mode = CONCAT(@@GLOBAL.sql_mode, ',STRICT_TRANS_TABLES');",
	"table-engine":       "ALTER TABLE `TABLE` ENGINE = InnoDB;",
	"journal-mode":       "PRAGMA journal_mode = WAL;",
	"space":              "etcdctl defrag --cluster",
	"no-space":           "etcdctl defrag --cluster && etcdctl alarm disarm",
}

func redisRemedy(store *connect.Store, f *store.Finding) []string {
	switch f.Code {
	case "eviction-policy":
		return []string{"CONFIG SET maxmemory-policy noeviction", "CONFIG REWRITE"}
	case "persistence":
		return []string{"CONFIG SET appendonly yes", "CONFIG REWRITE"}
	case "appendfsync":
		if strings.HasPrefix(store.Settings.Durability, "fsynced") {
			return []string{"CONFIG SET appendfsync always", "CONFIG REWRITE"}
		}
		return []string{"CONFIG SET appendfsync everysec", "CONFIG REWRITE"}
	case "memory":
		return []string{"CONFIG SET maxmemory SIZE", "CONFIG REWRITE"}
	case "channels":
		return []string{"ACL SETUSER " + store.User + " &" + store.Prefix + "* +spublish +ssubscribe +sunsubscribe"}
	case "cluster-client":
		return []string{"redis+cluster:// in REPRISE_STORE, and redis.NewClusterClient in the application"}
	}
	switch {
	case containsAny(f.Detail, "NOPERM", "can't run this command", "ACL failure"):
		return []string{aclLine(store), "ACL SAVE"}
	case containsAny(f.Detail, "NOAUTH", "WRONGPASS"):
		return []string{"redis://USER:PASSWORD@" + store.Endpoint + " in REPRISE_STORE"}
	}
	return nil
}

// aclLine returns the line that grants the user all that the store and this program need:
// docs/operate/redis.md lists it.
func aclLine(store *connect.Store) string {
	line := "ACL SETUSER " + store.User + " ~" + store.Prefix + "* &" + store.Prefix + "*" +
		" +set +pexpiretime +getrange +evalsha +eval +get +del +time +spublish +ssubscribe +sunsubscribe +ping +info +config|get +scan"
	switch {
	case strings.HasPrefix(store.Settings.Durability, "acked"):
		line += " +wait"
	case strings.HasPrefix(store.Settings.Durability, "fsynced"):
		line += " +waitaof"
	}
	if strings.HasPrefix(store.Name, "Redis cluster") {
		line += " +asking +cluster|slots +cluster|shards +cluster|nodes +cluster|info +command +subscribe"
	}
	return line
}

// roleSettings are the settings of the application's role that findings ask for.
var roleSettings = map[string]string{
	"synchronous-commit":  "synchronous_commit = on",
	"read-only":           "default_transaction_read_only = off",
	"isolation":           "default_transaction_isolation = 'read committed'",
	"statement-timeout":   "statement_timeout = '60s'",
	"idle-timeout":        "idle_in_transaction_session_timeout = '60s'",
	"transaction-timeout": "transaction_timeout = '60s'",
}

func postgresRemedy(store *connect.Store, f *store.Finding) []string {
	role := pgx.Identifier{store.User}.Sanitize()
	records := pgx.Identifier{cmp.Or(store.Config.Schema, reprisepg.DefaultSchema), cmp.Or(store.Config.Table, reprisepg.DefaultTable)}.Sanitize()
	if setting := roleSettings[f.Code]; setting != "" {
		return []string{"ALTER ROLE " + role + " SET " + setting + ";"}
	}
	switch f.Code {
	case "autovacuum":
		if strings.Contains(f.Detail, "autovacuum_enabled") {
			return []string{"ALTER TABLE " + records + " RESET (autovacuum_enabled);"}
		}
		return []string{"ALTER SYSTEM SET autovacuum = on;", "ALTER SYSTEM SET track_counts = on;", "SELECT pg_reload_conf();"}
	case "fsync":
		return []string{"ALTER SYSTEM SET fsync = on;", "SELECT pg_reload_conf();"}
	case "full-page-writes":
		return []string{"ALTER SYSTEM SET full_page_writes = on;", "SELECT pg_reload_conf();"}
	case "in-recovery":
		return []string{"target_session_attrs=read-write in the URL"}
	case "unlogged":
		return []string{"ALTER TABLE " + records + " SET LOGGED;"}
	case "schema":
		switch {
		case containsAny(f.Detail, "SQLSTATE 42501"):
			return grants(store)
		case containsAny(f.Detail, "run Migrate, or"):
			return []string{tableLine("migrate apply", store)}
		}
		return nil
	case "privileges":
		return grants(store)
	case "other-grants":
		_, revoke, _ := strings.Cut(f.Detail, "REVOKE ")
		return []string{"REVOKE " + revoke + ";"}
	case "unpurged":
		return []string{tableLine("purge", store)}
	}
	_, policy, hidden := strings.Cut(f.Detail, "CREATE POLICY ")
	switch {
	case hidden:
		return []string{"CREATE POLICY " + policy + ";"}
	case containsAny(f.Detail, "SQLSTATE 42501"):
		return grants(store)
	case containsAny(f.Detail, "SQLSTATE 42P01", "SQLSTATE 42883", "SQLSTATE 3F000"):
		return []string{tableLine("migrate apply", store)}
	case containsAny(f.Detail, "SQLSTATE 28P01", "SQLSTATE 28000"):
		return []string{"postgres://USER:PASSWORD@" + store.Endpoint + " in REPRISE_STORE, or PGPASSWORD"}
	}
	return nil
}

// tableLine returns a command of this program for the table. The role of a migration may
// need privileges that the application's has not.
func tableLine(command string, store *connect.Store) string {
	line := "reprise " + command
	if store.Settings.Schema != "" {
		line += " --schema " + store.Settings.Schema
	}
	if store.Settings.Table != "" {
		line += " --table " + store.Settings.Table
	}
	return line
}

func grants(store *connect.Store) []string {
	text, err := reprisepg.Grants(store.Config, store.User)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(text), "\n")
}

func containsAny(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}
