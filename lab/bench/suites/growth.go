package suites

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/bench/report"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// partitions of the table of a variant of the suite keys.
const partitions = 16

// growth fills stores with completed keys, and measures at each number of keys the memory
// of a key and the latency of a new one and of a replay with eight connections. Then it
// purges from PostgreSQL.
func (b *bench) growth(h *host, suite *report.Suite) error {
	for _, v := range []Variant{
		Reprise("nethttp", "redis"), Reprise("nethttp", "postgres"),
		Reprise("nethttp", "postgres").called(fmt.Sprintf("nethttp+postgres, %d partitions", partitions)),
	} {
		if !b.selected.MatchString(v.Name) {
			continue
		}
		err := with(h.ctx, func(h *host) error {
			p := &place{bench: b, host: h, words: b.words(), usage: map[string]usageOf{}, suite: suite}
			return p.fill(v)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
	}
	return nil
}

// fill measures one store on a fresh server.
func (p *place) fill(v Variant) error {
	if v.Store == "redis" {
		redis := servers.Redis.Start(p.host)
		p.words["redis"], p.suite.Machine.Redis = redis.Addr(), fmt.Sprint(redis.Version())
		p.usage["redis"] = func(h *host) servers.Usage { return redis.Usage(h) }
		s, err := p.start(v)
		if err != nil {
			return err
		}
		return p.grow(started{v, s}, func() (filling, error) { return redisFilling(p.host, redis) })
	}
	p.startPostgres(p, false, false)
	s, err := p.start(v)
	if err != nil {
		return err
	}
	if strings.HasSuffix(v.Name, "partitions") {
		if err := p.partition(); err != nil {
			return err
		}
	}
	if err := p.grow(started{v, s}, func() (filling, error) { return postgresFilling(p.host, p.postgres) }); err != nil {
		return err
	}
	return p.purgeAll(v)
}

// partition replaces the empty table of records by one that is partitioned by the hash
// of the ID.
func (p *place) partition() error {
	statements := []string{
		"ALTER TABLE reprise_records RENAME TO unpartitioned",
		"CREATE TABLE reprise_records (LIKE unpartitioned INCLUDING ALL) PARTITION BY HASH (id)",
		"DROP TABLE unpartitioned",
	}
	for i := range partitions {
		statements = append(statements, fmt.Sprintf(
			"CREATE TABLE reprise_records_%d PARTITION OF reprise_records FOR VALUES WITH (MODULUS %d, REMAINDER %[1]d) WITH (fillfactor = 98, autovacuum_vacuum_scale_factor = 0.02)",
			i, partitions,
		))
	}
	for _, statement := range statements {
		if _, err := p.postgres.Exec(p.host.ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// purgeAll makes some of the records due, and measures how fast they are purged.
func (p *place) purgeAll(v Variant) error {
	const most, batch = 100_000, 1000
	due := fmt.Sprintf(`UPDATE reprise_records SET expires_at = now() - interval '1 hour', valid_until = now() - interval '1 hour'
		WHERE id IN (SELECT id FROM reprise_records LIMIT %d)`, most)
	if _, err := p.postgres.Exec(p.host.ctx, due); err != nil {
		return err
	}
	if _, err := p.postgres.Exec(p.host.ctx, "VACUUM ANALYZE reprise_records"); err != nil {
		return err
	}
	pool, err := pgxpool.New(p.host.ctx, p.words["postgres"])
	if err != nil {
		return err
	}
	defer pool.Close()
	purger, err := reprisepg.New(pool, reprisepg.Config{})
	if err != nil {
		return err
	}
	before, err := postgresFilling(p.host, p.postgres)
	if err != nil {
		return err
	}
	began, store, records := time.Now(), p.usage["postgres"](p.host), 0
	for n := batch; n == batch; records += n {
		if n, err = purger.Purge(p.host.ctx, batch); err != nil {
			return err
		}
	}
	took, used := time.Since(began), p.usage["postgres"](p.host).Since(store)
	after, err := postgresFilling(p.host, p.postgres)
	if err != nil {
		return err
	}
	if records == 0 {
		return errors.New("nothing was purged")
	}
	each := float64(records)
	row := report.Row{Variant: v.Name, Kind: "purge", Keys: int(before.keys), PerSecond: round3(each / took.Seconds()), StoreCPU: round3(micros(used) / each), Values: map[string]float64{
		"purged": each, "log_bytes_per_key": round3((after.log - before.log) / each),
	}}
	p.suite.Rows = append(p.suite.Rows, row)
	p.print([]report.Row{row})
	return nil
}

// filling is how full a store is.
type filling struct{ keys, bytes, indexes, log float64 }

// grow measures one store.
func (p *place) grow(v started, size func() (filling, error)) error {
	const fillers = 64
	fill := load.Order{Addr: v.server.addr, Connections: fillers, Kind: load.New, Count: fillers, Marked: true}
	if _, err := p.load.Measure(fill, func() {}); err != nil { // scripts, statements, connections
		return err
	}
	empty, err := size()
	if err != nil {
		return err
	}
	last := empty
	for _, keys := range p.keys {
		now, err := size()
		if err != nil {
			return err
		}
		if fill.Count = keys - int(now.keys-empty.keys); fill.Count > 0 {
			if _, err := p.load.Measure(fill, func() {}); err != nil {
				return err
			}
			if now, err = size(); err != nil {
				return err
			}
		}
		logged := 0.0 // by the replays and new keys of the measurement before, too
		if now.keys > last.keys {
			logged = round3((now.log - last.log) / (now.keys - last.keys))
		}
		last = now
		each := quantile([]float64{(now.bytes - empty.bytes) / (now.keys - empty.keys)}, .5)
		for _, kind := range BothKinds {
			rows, err := p.rounds([]started{v}, situation{kind: kind, connections: 8})
			if err != nil {
				return err
			}
			rows[0].Keys, rows[0].Values = int(now.keys), map[string]float64{"bytes_per_key": each, "at": float64(keys)}
			if now.log > empty.log {
				rows[0].Values["log_bytes_per_key"] = logged
				rows[0].Values["index_bytes_per_key"] = round3((now.indexes - empty.indexes) / (now.keys - empty.keys))
			}
			p.suite.Rows = append(p.suite.Rows, rows...)
			p.print(rows)
		}
	}
	return nil
}

// redisFilling is the memory that Redis uses, without that of its clients.
func redisFilling(h *host, redis *servers.RedisServer) (filling, error) {
	var f filling
	reply, err := redis.Do(h.ctx, "INFO", "memory")
	if err != nil {
		return f, err
	}
	text, _ := reply.(string)
	f.bytes = redisField(text, "used_memory") - redisField(text, "mem_clients_normal")
	if reply, err = redis.Do(h.ctx, "DBSIZE"); err != nil {
		return f, err
	}
	n, _ := reply.(int64)
	f.keys = float64(n)
	return f, nil
}

// redisField reads a number of INFO.
func redisField(text, name string) float64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			n, _ := strconv.ParseFloat(value, 64)
			return n
		}
	}
	return 0
}

// postgresFilling is the size of the tables of the store, indexes included.
func postgresFilling(h *host, postgres *servers.PostgresServer) (f filling, err error) {
	if f.keys, err = postgresNumber(h, postgres, "SELECT count(*) FROM reprise_records"); err != nil {
		return f, err
	}
	for query, size := range map[string]*float64{"pg_total_relation_size": &f.bytes, "pg_indexes_size": &f.indexes} {
		query = "SELECT sum(" + query + "(oid)) FROM pg_class WHERE relkind = 'r' AND relname ~ '^reprise_records(_[0-9]+)?$'"
		if *size, err = postgresNumber(h, postgres, query); err != nil {
			return f, err
		}
	}
	f.log, err = postgresNumber(h, postgres, "SELECT pg_current_wal_insert_lsn() - '0/0'")
	return f, err
}

// postgresNumber is the first column of the first row.
func postgresNumber(h *host, postgres *servers.PostgresServer, sql string) (float64, error) {
	rows, err := postgres.Exec(h.ctx, sql)
	if err != nil {
		return 0, err
	}
	if len(rows) == 0 || len(rows[0]) == 0 {
		return 0, fmt.Errorf("no row from %s", sql)
	}
	return strconv.ParseFloat(rows[0][0], 64)
}
