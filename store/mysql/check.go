package reprisemysql

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/core/store"
)

// The codes of the findings of Check.
const (
	findingVersion     = "version"
	findingDurability  = "innodb-flush-log"
	findingBinlog      = "sync-binlog"
	findingFormat      = "binlog-format"
	findingReadOnly    = "read-only"
	findingEngine      = "table-engine"
	findingPacket      = "max-allowed-packet"
	findingSQLMode     = "sql-mode"
	findingGalera      = "galera"
	leastPacket        = 4 << 20
	leastMariaDB       = "10.6"
	leastMySQL         = "8.0"
	mariaDB            = "MariaDB"
	serverVariables    = "SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog, " + readOnly + ", @@max_allowed_packet, @@sql_mode"
	engineOfTable      = "SELECT engine FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?"
	formatVariable     = "SHOW VARIABLES LIKE 'binlog_format'"
	galeraVariable     = "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'"
	strictTransactions = "STRICT_TRANS_TABLES"
	strictAll          = "STRICT_ALL_TABLES"
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

// findings collects the findings of Check.
type findings []store.Finding

func (l *findings) add(code string, severity store.Severity, format string, args ...any) {
	*l = append(*l, store.Finding{Code: code, Severity: severity, Detail: fmt.Sprintf(format, args...)})
}

// Check implements [store.Checker]: it checks the server, the table and the settings of
// one session of the pool. It does not write.
func (s *Store) Check(ctx context.Context) ([]store.Finding, error) {
	var (
		list                   findings
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
	switch product, least := versionOf(version); {
	case !atLeast(version, least):
		list.add(findingVersion, store.Unsafe, "%s %s is not supported; use %s or newer", product, version, least)
	case replica:
		list.add(findingReadOnly, store.Unsafe, "the server is read-only; connect to the primary")
	}
	switch {
	case flush == 0:
		list.add(findingDurability, store.Unsafe, "innodb_flush_log_at_trx_commit is 0, so a crash of the server loses the records of the last second, and their operations run again; set it to 1")
	case flush != 1:
		list.add(findingDurability, store.Warning, "innodb_flush_log_at_trx_commit is %d, so a crash of the machine loses the records of the last second, and their operations run again; set it to 1", flush)
	}
	if binlog && sync != 1 {
		list.add(findingBinlog, store.Warning, "sync_binlog is %d, so a crash of the machine may roll back acknowledged commits, and their operations run again; set it to 1", sync)
	}
	if err := db.QueryRowContext(ctx, formatVariable).Scan(&name, &format); binlog && err == nil && format.String == "STATEMENT" {
		list.add(findingFormat, store.Unsafe, "binlog_format is STATEMENT, so replicas decide by their own clocks, and one that lags loses completions; set it to ROW or MIXED")
	}
	switch {
	case packet < 2*largePayload:
		list.add(findingPacket, store.Unsafe, "max_allowed_packet is %d bytes, so a larger response breaks the connection; set it to 16M or more", packet)
	case packet < leastPacket:
		list.add(findingPacket, store.Warning, "max_allowed_packet is %d bytes, so larger responses are not stored; set it to at least twice the longest response", packet)
	}
	if !strings.Contains(mode, strictTransactions) && !strings.Contains(mode, strictAll) {
		list.add(findingSQLMode, store.Warning, "sql_mode is not strict, so the server may silently truncate what handlers write; add STRICT_TRANS_TABLES")
	}
	if err := list.addSemiSync(ctx, db.DB); err != nil {
		return nil, dialect.Fail("check", err)
	}
	if err := db.QueryRowContext(ctx, galeraVariable).Scan(&name, &galera); err == nil && galera.String == "ON" {
		list.add(findingGalera, store.Warning, "the server is a node of a Galera cluster: another node may have older rows, and an attempt there does not see one here; connect all clients to one node")
	}
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
	if !strings.EqualFold(engine.String, "InnoDB") {
		list.add(findingEngine, store.Unsafe, "the table has the engine %s, which has no transactions; use InnoDB", engine.String)
	}
	return list, nil
}

// versionOf returns the product of a version, and its oldest version that is supported.
func versionOf(version string) (product, least string) {
	if strings.Contains(version, mariaDB) {
		return mariaDB, leastMariaDB
	}
	return "MySQL", leastMySQL
}

// atLeast reports whether a version such as 10.11.19-MariaDB is least or newer.
func atLeast(version, least string) bool {
	major, minor := numbers(version)
	x, y := numbers(least)
	return major > x || major == x && minor >= y
}

// numbers returns the major and the minor number of a version.
func numbers(version string) (major, minor int) {
	parts := strings.FieldsFunc(version, func(r rune) bool { return r == '.' || r == '-' })
	if len(parts) < 2 {
		return 0, 0
	}
	major, _ = strconv.Atoi(parts[0])
	minor, _ = strconv.Atoi(parts[1])
	return major, minor
}
