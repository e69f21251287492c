package suites

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/lab/bench/report"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
)

// counters are what a store counts: the commands that it ran, its records, the bytes that
// it keeps, and the bytes that it wrote to its log. A store without such a counter lacks
// it.
type counters map[string]float64

// meter reads the counters of a store.
type meter func() (counters, error)

// onFreshServers measures variants, each on a server of its own. It leaves out those
// whose server this machine lacks.
func (b *bench) onFreshServers(h *host, suite *report.Suite, variants []Variant, measure func(*place, started, meter) error) error {
	for _, v := range variants {
		if !b.selected.MatchString(v.Name) {
			continue
		}
		err := with(h.ctx, func(h *host) error {
			p := &place{bench: b, host: h, words: b.words(), usage: map[string]usageOf{}, suite: suite}
			read, err := p.metered(v)
			if err != nil {
				return err
			}
			s, err := p.start(v)
			if err != nil {
				return err
			}
			if v.Store == "" && v.Marked { // its records are in the process
				read = ofMemory(s)
				if file := p.words["sqlite"]; file != "" {
					read = ofFiles(filepath.Join(file, strings.TrimPrefix(v.Name, "nethttp+")+".db"))
				}
			}
			return measure(p, started{v, s}, read)
		})
		var s stopped
		if errors.As(err, &s) && s.missing {
			b.leaveOut(v.Name + ": " + s.reason)
		} else if err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
	}
	return nil
}

// metered starts the server of a store, and returns the function that reads its counters.
func (p *place) metered(v Variant) (meter, error) {
	switch v.Store {
	case "redis":
		redis := p.startRedis()
		return func() (counters, error) { return redisCounters(p.host, redis) }, nil
	case "postgres":
		p.startPostgres(p, false, false, "shared_preload_libraries=pg_stat_statements")
		if _, err := p.postgres.Exec(p.host.ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
			return nil, err
		}
		return func() (counters, error) { return postgresCounters(p.host, p.postgres) }, nil
	case "mysql":
		p.startMariaDB(p)
		db := mysqlserver.Pool(p.host, p.words["mysql"], 1)
		return func() (counters, error) { return mariaDBCounters(p.host, db) }, nil
	case "etcd":
		if err := p.startEtcd(p); err != nil {
			return nil, err
		}
		return func() (counters, error) { return etcdCounters(p.host, strings.Split(p.words["etcd"], ",")) }, nil
	}
	if strings.Contains(v.Args, "{sqlite}") {
		if err := p.folderForSQLite(); err != nil {
			return nil, err
		}
	}
	return func() (counters, error) { return nil, nil }, nil
}

// redisCounters counts the commands, those of scripts included. The memory is without
// that of clients.
func redisCounters(h *host, redis *servers.RedisServer) (counters, error) {
	reply, err := redis.Do(h.ctx, "INFO", "everything")
	if err != nil {
		return nil, err
	}
	text, _ := reply.(string)
	c, fields := counters{}, counters{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			rest, _, _ = strings.Cut(strings.TrimPrefix(rest, "calls="), ",")
			if command == "info" || command == "dbsize" {
				rest = ""
			}
			name = "commands"
		}
		if n, err := strconv.ParseFloat(rest, 64); err == nil {
			fields[name] += n
		}
	}
	c["commands"] = fields["commands"]
	c["bytes"] = fields["used_memory"] - fields["mem_clients_normal"]
	if reply, err = redis.Do(h.ctx, "DBSIZE"); err != nil {
		return nil, err
	}
	n, _ := reply.(int64)
	c["records"] = float64(n)
	return c, nil
}

// postgresCounters counts the statements that clients sent, those that begin and end a
// transaction included. Records are counted by the statistics of the server.
func postgresCounters(h *host, postgres *servers.PostgresServer) (c counters, err error) {
	c = counters{}
	for name, query := range map[string]string{
		"bytes":       "SELECT coalesce(sum(pg_total_relation_size(relid)), 0) FROM pg_stat_user_tables WHERE relname = 'reprise_records'",
		"index_bytes": "SELECT coalesce(sum(pg_indexes_size(relid)), 0) FROM pg_stat_user_tables WHERE relname = 'reprise_records'",
		"log_bytes":   "SELECT pg_current_wal_insert_lsn() - '0/0'",
		"commands":    "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE toplevel",
		"records":     "SELECT count(*) FROM reprise_records",
	} {
		rows, err := postgres.Exec(h.ctx, query)
		if err != nil {
			return nil, err
		}
		if c[name], err = strconv.ParseFloat(rows[0][0], 64); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// mariaDBCounters counts the statements that clients sent.
func mariaDBCounters(h *host, db *sql.DB) (counters, error) {
	c := counters{"bytes": 0}
	for name, variable := range map[string]string{"commands": "Questions", "log_bytes": "Innodb_lsn_current"} {
		var ignored string
		var value float64
		if err := db.QueryRowContext(h.ctx, "SHOW GLOBAL STATUS LIKE '"+variable+"'").Scan(&ignored, &value); err != nil {
			return nil, err
		}
		c[name] = value
	}
	if _, err := db.ExecContext(h.ctx, "ANALYZE TABLE reprise_records"); err != nil {
		return nil, err
	}
	var bytes float64
	err := db.QueryRowContext(h.ctx, "SELECT data_length + index_length FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'reprise_records'").Scan(&bytes)
	c["bytes"] = bytes
	return c, err
}

// etcdCounters counts the calls that the members served, and takes the size of the
// database of the first: each has a copy.
func etcdCounters(h *host, members []string) (counters, error) {
	c := counters{}
	for i, member := range members {
		text, err := get(h.ctx, "http://"+member+"/metrics")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
			n, err := strconv.ParseFloat(value, 64)
			switch {
			case !ok || err != nil:
			case i == 0 && name == "etcd_mvcc_db_total_size_in_use_in_bytes":
				c["bytes"] = n
			case strings.HasPrefix(name, "grpc_server_handled_total{") && (strings.Contains(name, "etcdserverpb.KV") || strings.Contains(name, `"LeaseGrant"`)):
				c["commands"] += n
			}
		}
	}
	return c, nil
}

// ofMemory takes the memory of the process, with what Go's collector has not returned.
func ofMemory(s *server) meter {
	return func() (counters, error) {
		return counters{"bytes": float64(residentBytes(s.cmd.Process.Pid))}, nil
	}
}

// ofFiles takes the size of a file of SQLite, and of its log, which is written anew from
// its beginning.
func ofFiles(name string) meter {
	return func() (counters, error) {
		c := counters{}
		for _, file := range []string{name, name + "-wal"} {
			info, err := os.Stat(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			c["bytes"] += float64(info.Size())
		}
		return c, nil
	}
}

// residentBytes is the memory of a process, and 0 where the system does not tell.
func residentBytes(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kb << 10
		}
	}
	return 0
}
