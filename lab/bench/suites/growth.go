package suites

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/bench/report"
	"github.com/reprise-go/reprise/lab/servers"
)

// growth fills stores with completed keys, and measures at each number of keys the memory
// of a key and the latency of a new one and of a replay with eight connections.
func (b *bench) growth(h *host, suite *report.Suite) error {
	p := &place{bench: b, host: h, words: b.words(), usage: map[string]usageOf{}, suite: suite}
	redis := servers.Redis.Start(h)
	p.words["redis"], suite.Machine.Redis = redis.Addr(), fmt.Sprint(redis.Version())
	p.usage["redis"] = func(h *host) servers.Usage { return redis.Usage(h) }
	b.startPostgres(p, false, false)
	postgres := p.postgres
	for _, v := range []Variant{Reprise("nethttp", "redis"), Reprise("nethttp", "postgres")} {
		if !b.selected.MatchString(v.Name) {
			continue
		}
		s, err := p.start(v)
		if err != nil {
			return err
		}
		size := func() (filling, error) { return redisFilling(h, redis) }
		if v.Store == "postgres" {
			size = func() (filling, error) { return postgresFilling(h, postgres) }
		}
		if err := p.grow(started{v, s}, size); err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
	}
	return nil
}

// filling is how full a store is.
type filling struct{ keys, bytes float64 }

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
		each := quantile([]float64{(now.bytes - empty.bytes) / (now.keys - empty.keys)}, .5)
		for _, kind := range BothKinds {
			rows, err := p.rounds([]started{v}, situation{kind: kind, connections: 8})
			if err != nil {
				return err
			}
			rows[0].Keys, rows[0].Values = int(now.keys), map[string]float64{"bytes_per_key": each, "at": float64(keys)}
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
	f.bytes, err = postgresNumber(h, postgres, "SELECT pg_total_relation_size('reprise_records')")
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
