package reprisesqlite

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
	findingJournal     = "journal-mode"
	findingSynchronous = "synchronous"
	findingNetwork     = "network-filesystem"
	findingInMemory    = "in-memory"
	findingIsolation   = "read-uncommitted"
	findingPool        = "pool-size"
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

// Check implements [store.Checker]: it checks the version, the file and the settings of
// one connection of the pool. It does not see connections that were opened with other
// settings. It does not write.
func (s *Store) Check(ctx context.Context) ([]store.Finding, error) {
	var list []store.Finding
	add := func(code string, severity store.Severity, format string, args ...any) {
		list = append(list, store.Finding{Code: code, Severity: severity, Detail: fmt.Sprintf(format, args...)})
	}
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
	if !atLeast(version, 3, 35) {
		add(findingVersion, store.Unsafe, "SQLite %s is not supported; use a driver with 3.35 or newer", version)
	}
	conns := s.table.DB.Stats().MaxOpenConnections
	switch {
	case file == "" && conns == 1:
		add(findingInMemory, store.Warning, "the database is in memory, so a restart loses every record; use a file")
	case file == "":
		add(findingInMemory, store.Unsafe, "the database is in memory, and each connection of the pool may have a separate one; use a file")
	case journal == "off" || journal == "memory":
		add(findingJournal, store.Unsafe, "journal_mode is %s, so a crash can destroy the file; set journal_mode=WAL", journal)
	case journal != "wal":
		add(findingJournal, store.Warning, "journal_mode is %s, so replays wait for writes; set journal_mode=WAL", journal)
	}
	switch synchronous {
	case 0:
		add(findingSynchronous, store.Unsafe, "synchronous is OFF, so a power failure can destroy the file; set synchronous=FULL")
	case 1:
		add(findingSynchronous, store.Warning, "synchronous is NORMAL, so a power failure loses the last records, and their operations run again; set synchronous=FULL")
	}
	if uncommitted != 0 {
		add(findingIsolation, store.Unsafe, "read_uncommitted is on, so responses that are never committed can be replayed; set read_uncommitted=0")
	}
	if kind := networkFilesystem(file); file != "" && kind != "" {
		add(findingNetwork, store.Unsafe, "the file is on %s, whose locks and shared memory do not exclude processes on other hosts; use a local disk", kind)
	}
	if conns == 1 && file != "" {
		add(findingPool, store.Warning, "the pool has one connection, so replays wait for writes; call SetMaxOpenConns with 4 or more")
	}
	schema, found, err := s.table.CheckSchema(ctx)
	if found {
		list = append(list, schema)
	}
	return list, err
}

// atLeast reports whether a version such as 3.46.1 is major.minor or newer.
func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	x, errX := strconv.Atoi(parts[0])
	y, errY := strconv.Atoi(parts[1])
	return errX == nil && errY == nil && (x > major || x == major && y >= minor)
}
