package reprisemysql

import (
	"context"
	"database/sql"
	"strings"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

const (
	leastPacket     = 4 << 20
	serverVariables = "SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog, " + readOnly + ", @@max_allowed_packet, @@sql_mode"
	engineOfTable   = "SELECT engine FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?"
	formatVariable  = "SHOW VARIABLES LIKE 'binlog_format'"
	galeraVariable  = "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'"
)

// Open is [New], followed by [Store.Check] and a trial of every operation on a record
// that it deletes again. The error is ErrMisconfigured for a server on which a guarantee
// does not hold. Warnings go to [Config.Logger].
func Open(ctx context.Context, db *sql.DB, c Config) (*Store, error) {
	s, err := New(db, c)
	if err != nil {
		return nil, err
	}
	if err := s.table.Prove(ctx, s); err != nil {
		return nil, err
	}
	return s, nil
}

// oldest returns the product that has a version, and the oldest release of it that is
// supported.
func oldest(version string) (product string, major, minor int) {
	if strings.Contains(version, "MariaDB") {
		return "MariaDB", 10, 6
	}
	return "MySQL", 8, 0
}

// Check implements [store.Checker]: it checks the server, the table and the settings of
// one session of the pool. It does not write.
func (s *Store) Check(ctx context.Context) ([]store.Finding, error) {
	var (
		list                   sqlstore.Findings
		version, mode, name    string
		flush, sync            int
		binlog, replica        bool
		packet                 int64
		engine, galera, format sql.NullString
	)
	db := s.table.DB
	err := db.QueryRowContext(ctx, serverVariables).Scan(&version, &flush, &binlog, &sync, &replica, &packet, &mode)
	if err != nil {
		return nil, dialect.Fail("check", err)
	}
	product, major, minor := oldest(version)
	list.Add(!sqlstore.AtLeast(version, major, minor), "version", store.Unsafe, "%s %s is not supported; use %d.%d or newer", product, version, major, minor)
	list.Add(replica, "read-only", store.Unsafe, "the server is read-only; connect to the primary")
	list.Add(flush == 0, "innodb-flush-log", store.Unsafe, "innodb_flush_log_at_trx_commit is 0, so a crash of the server loses the records of the last second, and their operations run again; set it to 1")
	list.Add(flush > 1, "innodb-flush-log", store.Warning, "innodb_flush_log_at_trx_commit is %d, so a crash of the machine loses the records of the last second, and their operations run again; set it to 1", flush)
	list.Add(binlog && sync != 1, "sync-binlog", store.Warning, "sync_binlog is %d, so a crash of the machine may roll back acknowledged commits, and their operations run again; set it to 1", sync)
	err = db.QueryRowContext(ctx, formatVariable).Scan(&name, &format)
	list.Add(binlog && err == nil && format.String == "STATEMENT", "binlog-format", store.Unsafe, "binlog_format is STATEMENT, so replicas decide by their own clocks, and one that lags loses completions; set it to ROW or MIXED")
	list.Add(packet < 2*largePayload, "max-allowed-packet", store.Unsafe, "max_allowed_packet is %d bytes, so a larger response breaks the connection; set it to 16M or more", packet)
	list.Add(packet >= 2*largePayload && packet < leastPacket, "max-allowed-packet", store.Warning, "max_allowed_packet is %d bytes, so larger responses are not stored; set it to at least twice the longest response", packet)
	strict := strings.Contains(mode, "STRICT_TRANS_TABLES") || strings.Contains(mode, "STRICT_ALL_TABLES")
	list.Add(!strict, "sql-mode", store.Warning, "sql_mode is not strict, so the server may silently truncate what handlers write; add STRICT_TRANS_TABLES")
	if err := addSemiSync(ctx, db.DB, &list); err != nil {
		return nil, dialect.Fail("check", err)
	}
	err = db.QueryRowContext(ctx, galeraVariable).Scan(&name, &galera)
	list.Add(err == nil && galera.String == "ON", "galera", store.Warning, "the server is a node of a Galera cluster: another node may have older rows, and an attempt there does not see one here; connect all clients to one node")
	if replica { // the store does not read the table of a replica
		return list, nil
	}
	switch schema, found, err := s.table.CheckSchema(ctx); {
	case err != nil:
		return nil, err
	case found:
		list = append(list, schema)
		if schema.Severity == store.Unsafe {
			return list, nil
		}
	}
	if err := db.QueryRowContext(ctx, engineOfTable, s.table.Options.Table).Scan(&engine); err != nil {
		return nil, dialect.Fail("check", err)
	}
	list.Add(!strings.EqualFold(engine.String, "InnoDB"), "table-engine", store.Unsafe, "the table has the engine %s, which has no transactions; use InnoDB", engine.String)
	return list, nil
}
