package suites

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/bench/report"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
)

// The suite cost sends a number of requests with responses of 1 KiB to each store: one
// after the other, as a quiet service does, and over 64 connections, as one at its peak.
// It measures CPU time and sizes, which other work on the machine changes little, and
// repeats everything to tell how much.
const (
	costRepeats     = 2
	costConnections = 64
	costProgram     = `{"status":201,"body_size":1024}`
	costAloneShare  = 5 // of the requests, one in so many is sent one after the other
)

// counters are what a store counts: the commands that it ran, the bytes that it keeps,
// and the bytes that it wrote to its log. A store that has no such counter lacks it.
type counters map[string]float64

// meter reads the counters of a store.
type meter func() (counters, error)

// costs measures every store.
func (b *bench) costs(h *host, suite *report.Suite) error {
	suite.Rounds, suite.Seconds = costRepeats, 0
	for _, v := range []Variant{
		Bare("nethttp"),
		Reprise("nethttp", "memory"), Reprise("nethttp", "redis"), Reprise("nethttp", "postgres"), Reprise("nethttp", "postgres-tx"),
		Reprise("nethttp", "mysql"), Reprise("nethttp", "mysql-tx"), Reprise("nethttp", "sqlite"), Reprise("nethttp", "sqlite-tx"),
		Reprise("nethttp", "etcd"),
	} {
		if !b.selected.MatchString(v.Name) {
			continue
		}
		err := with(h.ctx, func(h *host) error {
			return b.costsOf(h, suite, v)
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

// costsOf measures a store on a fresh server.
func (b *bench) costsOf(h *host, suite *report.Suite, v Variant) error {
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
	for _, connections := range []int{1, costConnections} {
		for _, kind := range BothKinds {
			row, err := p.cost(started{v, s}, kind, connections, read)
			if err != nil {
				return err
			}
			suite.Rows = append(suite.Rows, row)
			p.print([]report.Row{row})
		}
	}
	return nil
}

// metered starts the server of a store, and returns the function that reads its counters.
func (p *place) metered(v Variant) (meter, error) {
	switch v.Store {
	case "redis":
		redis := servers.Redis.Start(p.host)
		p.words["redis"], p.suite.Machine.Redis = redis.Addr(), fmt.Sprint(redis.Version())
		p.usage["redis"] = func(h *host) servers.Usage { return redis.Usage(h) }
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
		dir, err := os.MkdirTemp("", "bench")
		if err != nil {
			return nil, err
		}
		p.host.Cleanup(func() { _ = os.RemoveAll(dir) })
		p.words["sqlite"] = dir
	}
	return func() (counters, error) { return nil, nil }, nil
}

// cost measures one kind of requests, several times.
func (p *place) cost(v started, kind load.Kind, connections int, read meter) (report.Row, error) {
	o := load.Order{Addr: v.server.addr, Connections: connections, Kind: kind, Marked: v.Marked, Program: costProgram, Warmup: p.options.warmup}
	if o.Count = p.each; connections == 1 {
		o.Count = max(p.each/costAloneShare, 1)
	}
	row := report.Row{Variant: v.Name, Kind: string(kind), Connections: connections, Keys: o.Count, Values: map[string]float64{}}
	var samples []sample
	var cpus []float64
	for range costRepeats {
		var server, store servers.Usage
		var before counters
		var failed error
		r, err := p.load.Measure(o, func() {
			before, failed = read()
			server, store = v.server.usage(p.host), p.storeUsage(v)
		})
		if err := errors.Join(err, failed); err != nil {
			return row, err
		}
		requests := float64(r.Requests)
		s := sample{
			perSecond: r.PerSecond(), p50: micros(r.P50), p99: micros(r.P99),
			server: micros(v.server.usage(p.host).Since(server)) / requests,
			store:  micros(p.storeUsage(v).Since(store)) / requests,
		}
		samples, cpus = append(samples, s), append(cpus, s.cpu())
		after, err := read()
		if err != nil {
			return row, err
		}
		for name, value := range after {
			row.Values[name] += (value - before[name]) / requests / costRepeats
		}
	}
	for name, value := range row.Values {
		row.Values[name] = quantile([]float64{value}, .5)
	}
	if middle := quantile(cpus, .5); middle > 0 {
		row.Values["spread"] = round3((quantile(cpus, 1) - quantile(cpus, 0)) / middle)
	}
	row.PerSecond = median(samples, func(s sample) float64 { return s.perSecond })
	row.ServerCPU, row.StoreCPU = median(samples, func(s sample) float64 { return s.server }), median(samples, func(s sample) float64 { return s.store })
	row.P50, row.P99 = median(samples, func(s sample) float64 { return s.p50 }), median(samples, func(s sample) float64 { return s.p99 })
	return row, nil
}

// redisCounters counts the commands, those of scripts included.
func redisCounters(h *host, redis *servers.RedisServer) (counters, error) {
	f, err := redisFilling(h, redis)
	if err != nil {
		return nil, err
	}
	reply, err := redis.Do(h.ctx, "INFO", "commandstats")
	text, _ := reply.(string)
	commands := 0.0
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		calls, _, _ := strings.Cut(rest, ",")
		if n, err := strconv.ParseFloat(calls, 64); ok && err == nil && name != "info" && name != "dbsize" {
			commands += n
		}
	}
	return counters{"bytes": f.bytes, "commands": commands}, err
}

// postgresCounters counts the statements that clients sent, those that begin and end a
// transaction included.
func postgresCounters(h *host, postgres *servers.PostgresServer) (c counters, err error) {
	c = counters{}
	for name, query := range map[string]string{
		"bytes":     "SELECT coalesce(sum(pg_total_relation_size(relid)), 0) FROM pg_stat_user_tables WHERE relname = 'reprise_records'",
		"log_bytes": "SELECT pg_current_wal_insert_lsn() - '0/0'",
		"commands":  "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE toplevel",
	} {
		if c[name], err = postgresNumber(h, postgres, query); err != nil {
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
		asked, err := http.NewRequestWithContext(h.ctx, http.MethodGet, "http://"+member+"/metrics", http.NoBody)
		if err != nil {
			return nil, err
		}
		r, err := new(http.Client).Do(asked)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
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
