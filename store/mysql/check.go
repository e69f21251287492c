package reprisemysql

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/probe"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

const (
	leastPacket   = 4 << 20
	leastSemiSync = time.Hour

	settings = "SHOW VARIABLES WHERE Variable_name IN ('version', 'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'binlog_format', " +
		"'read_only', 'innodb_read_only', 'max_allowed_packet', 'sql_mode', 'wsrep_on') OR Variable_name LIKE 'rpl\\_semi\\_sync\\_%'"
	engineOfTable = "SELECT engine FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?"
)

// oldest returns the product that has a version, and the oldest release of it that is
// supported.
func oldest(version string) (product string, major, minor int) {
	if strings.Contains(version, "MariaDB") {
		return "MariaDB", 10, 6
	}
	return "MySQL", 8, 0
}

// judge returns the findings about the settings of a session of the pool, and whether the
// server is a replica.
func judge(_ *sqlstore.Table, _ sqlstore.Conn, is map[string]string) (list sqlstore.Findings, replica bool) {
	number := func(value string) int { n, _ := strconv.Atoi(value); return n }
	on := func(name string) bool { return is[name] != "" && is[name] != "OFF" && is[name] != "0" }
	replica = on("read_only") || on("innodb_read_only")
	product, major, minor := oldest(is["version"])
	flush, sync, packet := number(is["innodb_flush_log_at_trx_commit"]), number(is["sync_binlog"]), number(is["max_allowed_packet"])
	strict := strings.Contains(is["sql_mode"], "STRICT_TRANS_TABLES") || strings.Contains(is["sql_mode"], "STRICT_ALL_TABLES")
	list.Add(!probe.AtLeast(is["version"], major, minor), "version", store.Unsafe, "%s %s is not supported; use %d.%d or newer", product, is["version"], major, minor)
	list.Add(replica, "read-only", store.Unsafe, "the server is read-only; connect to the primary")
	list.Add(flush == 0, "innodb-flush-log", store.Unsafe, "innodb_flush_log_at_trx_commit is 0, so a crash of the server loses the records of the last second, and their operations run again; set it to 1")
	list.Add(flush > 1, "innodb-flush-log", store.Warning, "innodb_flush_log_at_trx_commit is %d, so a crash of the machine loses the records of the last second, and their operations run again; set it to 1", flush)
	list.Add(on("log_bin") && sync != 1, "sync-binlog", store.Warning, "sync_binlog is %d, so a crash of the machine may roll back acknowledged commits, and their operations run again; set it to 1", sync)
	list.Add(on("log_bin") && is["binlog_format"] == "STATEMENT", "binlog-format", store.Unsafe, "binlog_format is STATEMENT, so replicas decide by their own clocks, and one that lags loses completions; set it to ROW or MIXED")
	list.Add(packet < 2*largePayload, "max-allowed-packet", store.Unsafe, "max_allowed_packet is %d bytes, so a larger response breaks the connection; set it to 16M or more", packet)
	list.Add(packet >= 2*largePayload && packet < leastPacket, "max-allowed-packet", store.Warning, "max_allowed_packet is %d bytes, so larger responses are not stored; set it to at least twice the longest response", packet)
	list.Add(!strict, "sql-mode", store.Warning, "sql_mode is not strict, so the server may silently truncate what handlers write; add STRICT_TRANS_TABLES")

	// A primary that waits for its replicas, but whose settings let it acknowledge, or show
	// to others, a commit that no replica has. The names depend on the version.
	semi := func(name string) string {
		return cmp.Or(is["rpl_semi_sync_master_"+name], is["rpl_semi_sync_source_"+name])
	}
	waits, ms := semi("enabled") == "ON", number(semi("timeout"))
	list.Add(waits && ms < int(leastSemiSync.Milliseconds()), "semi-sync", store.Warning, "the server waits %d ms for a replica, and from then on acknowledges commits that no replica has, "+
		"so after a failover their operations can run again; set rpl_semi_sync_master_timeout (rpl_semi_sync_source_timeout) to %d or more", ms, leastSemiSync.Milliseconds())
	list.Add(waits && semi("wait_point") == "AFTER_COMMIT", "semi-sync", store.Warning, "the server shows a response to other sessions before a replica has it, so it can be replayed and then be lost; "+
		"set rpl_semi_sync_master_wait_point (rpl_semi_sync_source_wait_point) to AFTER_SYNC")
	list.Add(on("wsrep_on"), "galera", store.Warning, "the server is a node of a Galera cluster: another node may have older rows, and an attempt there does not see one here; connect all clients to one node")
	return list, replica
}

// judgeTable returns the findings about the table.
func judgeTable(ctx context.Context, t *sqlstore.Table) (list sqlstore.Findings, err error) {
	var engine string
	err = t.Read(ctx, "check", func(ctx context.Context, on sqlstore.Conn) error {
		return on.Query(ctx, engineOfTable, func(r sqlstore.Row) error { return r.Scan(&engine) }, t.Options.Table)
	})
	list.Add(!strings.EqualFold(engine, "InnoDB"), "table-engine", store.Unsafe, "the table has the engine %s, which has no transactions; use InnoDB", engine)
	return list, err
}
