package reprisesqlite

import (
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/probe"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

const (
	// nearlyFull is the share of a disk, in percent, from which on it is nearly full.
	nearlyFull = 85

	settings = "SELECT 'version', sqlite_version() UNION ALL SELECT 'journal', journal_mode FROM pragma_journal_mode " +
		"UNION ALL SELECT 'synchronous', synchronous FROM pragma_synchronous UNION ALL SELECT 'uncommitted', read_uncommitted FROM pragma_read_uncommitted " +
		"UNION ALL SELECT 'file', file FROM pragma_database_list WHERE name = 'main'"
)

// judge returns the findings about the version, the file and the settings of one
// connection of the pool.
func judge(t *sqlstore.Table, _ sqlstore.Conn, is map[string]string) (list sqlstore.Findings, replica bool) {
	_, conns := t.Conns()
	journal, memory := is["journal"], is["file"] == ""
	unsafe := journal == "off" || journal == "memory"
	kind, used := filesystem(is["file"])
	list.Add(!probe.AtLeast(is["version"], 3, 35), "version", store.Unsafe, "SQLite %s is not supported; use a driver with 3.35 or newer", is["version"])
	list.Add(memory && conns == 1, "in-memory", store.Warning, "the database is in memory, so a restart loses every record; use a file")
	list.Add(memory && conns != 1, "in-memory", store.Unsafe, "the database is in memory, and each connection of the pool may have a separate one; use a file")
	list.Add(!memory && unsafe, "journal-mode", store.Unsafe, "journal_mode is %s, so a crash can destroy the file; set journal_mode=WAL", journal)
	list.Add(!memory && !unsafe && journal != "wal", "journal-mode", store.Warning, "journal_mode is %s, so replays wait for writes; set journal_mode=WAL", journal)
	list.Add(is["synchronous"] == "0", "synchronous", store.Unsafe, "synchronous is OFF, so a power failure can destroy the file; set synchronous=FULL")
	list.Add(is["synchronous"] == "1", "synchronous", store.Warning, "synchronous is NORMAL, so a power failure loses the last records, and their operations run again; set synchronous=FULL")
	list.Add(is["uncommitted"] != "0", "read-uncommitted", store.Unsafe, "read_uncommitted is on, so responses that are never committed can be replayed; set read_uncommitted=0")
	list.Add(!memory && kind != "", "network-filesystem", store.Unsafe, "the file is on %s, whose locks and shared memory do not exclude processes on other hosts; use a local disk", kind)
	list.Add(!memory && used >= nearlyFull, "disk", store.Warning, "the file system of the file is full to %d %%: on a full one every claim fails, and no result is recorded; free space", used)
	list.Add(!memory && conns == 1, "pool-size", store.Warning, "the pool has one connection, so replays wait for writes; call SetMaxOpenConns with 4 or more")
	return list, false
}
