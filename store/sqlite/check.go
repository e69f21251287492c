package reprisesqlite

import (
	"context"
	"database/sql"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// Open is [New], followed by [Store.Check] and a trial of every operation on a record
// that it deletes again. The error is ErrMisconfigured for a database on which a
// guarantee does not hold. Warnings go to [Config.Logger].
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

// nearlyFull is the share of a disk, in percent, from which on it is nearly full.
const nearlyFull = 85

// Check implements [store.Checker]: it checks the version, the file and the settings of
// one connection of the pool. It does not see connections that were opened with other
// settings. It does not write.
func (s *Store) Check(ctx context.Context) ([]store.Finding, error) {
	var list sqlstore.Findings
	var version, journal, file string
	var synchronous, uncommitted int
	for query, to := range map[string]any{
		"SELECT sqlite_version()": &version,
		"PRAGMA journal_mode":     &journal,
		"PRAGMA synchronous":      &synchronous,
		"PRAGMA read_uncommitted": &uncommitted,
		"SELECT file FROM pragma_database_list WHERE name = 'main'": &file,
	} {
		if err := s.table.DB.QueryRowContext(ctx, query).Scan(to); err != nil {
			return nil, dialect.Fail("check", err)
		}
	}
	conns := s.table.DB.Stats().MaxOpenConnections
	memory, unsafe := file == "", journal == "off" || journal == "memory"
	kind, used := filesystem(file)
	list.Add(!sqlstore.AtLeast(version, 3, 35), "version", store.Unsafe, "SQLite %s is not supported; use a driver with 3.35 or newer", version)
	list.Add(memory && conns == 1, "in-memory", store.Warning, "the database is in memory, so a restart loses every record; use a file")
	list.Add(memory && conns != 1, "in-memory", store.Unsafe, "the database is in memory, and each connection of the pool may have a separate one; use a file")
	list.Add(!memory && unsafe, "journal-mode", store.Unsafe, "journal_mode is %s, so a crash can destroy the file; set journal_mode=WAL", journal)
	list.Add(!memory && !unsafe && journal != "wal", "journal-mode", store.Warning, "journal_mode is %s, so replays wait for writes; set journal_mode=WAL", journal)
	list.Add(synchronous == 0, "synchronous", store.Unsafe, "synchronous is OFF, so a power failure can destroy the file; set synchronous=FULL")
	list.Add(synchronous == 1, "synchronous", store.Warning, "synchronous is NORMAL, so a power failure loses the last records, and their operations run again; set synchronous=FULL")
	list.Add(uncommitted != 0, "read-uncommitted", store.Unsafe, "read_uncommitted is on, so responses that are never committed can be replayed; set read_uncommitted=0")
	list.Add(!memory && kind != "", "network-filesystem", store.Unsafe, "the file is on %s, whose locks and shared memory do not exclude processes on other hosts; use a local disk", kind)
	list.Add(!memory && used >= nearlyFull, "disk", store.Warning, "the file system of the file is full to %d %%: on a full one every claim fails, and no result is recorded; free space", used)
	list.Add(!memory && conns == 1, "pool-size", store.Warning, "the pool has one connection, so replays wait for writes; call SetMaxOpenConns with 4 or more")
	schema, found, err := s.table.CheckSchema(ctx)
	if found {
		list = append(list, schema)
	}
	return list, err
}
