package suites

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/bench/report"
	"github.com/reprise-go/reprise/servers"
)

// Shares of the time that a handler takes: within which all requests arrive, the instants
// between which every handler runs, and the lease, which is renewed.
const (
	arrive     = 0.2
	allBegan   = 0.5
	allRun     = 0.95
	leaseShare = 0.45
)

// ofHold returns a share of the time that a handler of the suite inflight takes.
func (o options) ofHold(share float64) time.Duration {
	return time.Duration(share * float64(o.hold)).Round(time.Millisecond)
}

// inFlight holds many requests, without keys and with them: the difference in memory, in
// CPU time and in the work of the store is due to attempts and their renewals.
func (b *bench) inFlight(h *host, suite *report.Suite) error {
	suite.Rounds, suite.Seconds = 0, b.hold.Seconds()
	p := &place{bench: b, host: h, words: b.words(), usage: map[string]usageOf{}, suite: suite}
	redis := servers.Redis.Start(h)
	p.words["redis"], suite.Machine.Redis = redis.Addr(), fmt.Sprint(redis.Version())
	p.usage["redis"] = func(h *host) servers.Usage { return redis.Usage(h) }
	b.startPostgres(p, false, false)
	work := map[string]func() (storeWork, error){
		"redis":    func() (storeWork, error) { return redisWork(h, redis) },
		"postgres": func() (storeWork, error) { return postgresWork(h, p.postgres) },
		"":         func() (storeWork, error) { return storeWork{}, nil },
	}
	for _, v := range []Variant{Reprise("nethttp", "memory"), Reprise("nethttp", "redis"), Reprise("nethttp", "postgres")} {
		if !b.selected.MatchString(v.Name) {
			continue
		}
		v.Args += " -lease " + b.ofHold(leaseShare).String()
		var without float64
		for _, kind := range []load.Kind{load.NoKey, load.New} {
			s, err := p.start(v) // a fresh process each time: Go's heap does not shrink at once
			if err != nil {
				return err
			}
			row, err := p.keep(started{v, s}, kind, work[v.Store])
			if err != nil {
				return fmt.Errorf("%s: %w", v.Name, err)
			}
			if kind == load.NoKey {
				without = row.Values["server_bytes"]
			} else {
				row.Values["bytes_per_attempt"] = round3((row.Values["server_bytes"] - without) / float64(b.inflight))
			}
			suite.Rows = append(suite.Rows, row)
			p.print([]report.Row{row})
		}
	}
	return nil
}

// keep sends all requests, each on a separate connection, and measures while their
// handlers run.
func (p *place) keep(v started, kind load.Kind, work func() (storeWork, error)) (report.Row, error) {
	o := load.Order{
		Addr: v.server.addr, Connections: p.inflight, Kind: kind, Count: p.inflight,
		CountWrong: true,
		Rate:       float64(p.inflight) / p.ofHold(arrive).Seconds(),
		Program:    fmt.Sprintf(`{"delay_ms":%d,"status":201,"body":"held"}`, p.hold.Milliseconds()),
	}
	row := report.Row{Variant: v.Name, Kind: string(kind), Connections: p.inflight}
	looked := make(chan error, 1)
	r, err := p.load.Measure(o, func() {
		go func() { looked <- p.look(v, &row, work) }()
	})
	if err == nil {
		err = <-looked
	}
	if err != nil {
		return row, err
	}
	row.Others = r.Wrong
	row.P50, row.P99 = micros(r.P50-p.hold), micros(r.P99-p.hold)
	return row, nil
}

// look fills in the measurements while all handlers run.
func (p *place) look(v started, row *report.Row, work func() (storeWork, error)) error {
	<-time.After(p.ofHold(allBegan))
	began, server, store := time.Now(), v.server.usage(p.host), p.storeUsage(v)
	before, err := work()
	if err != nil {
		return err
	}
	<-time.After(p.ofHold(allRun - allBegan))
	after, err := work()
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	row.Values = map[string]float64{
		"server_bytes":       float64(residentBytes(v.server.cmd.Process.Pid)),
		"server_cpu_percent": round3(100 * v.server.usage(p.host).Since(server).Seconds() / seconds),
		"store_cpu_percent":  round3(100 * p.storeUsage(v).Since(store).Seconds() / seconds),
		"writes_per_second":  round3((after.writes - before.writes) / seconds),
		"batches_per_second": round3((after.batches - before.batches) / seconds),
	}
	return nil
}

// storeWork is the work of a store so far: the rows or keys that it wrote, and the number
// of batches.
type storeWork struct{ writes, batches float64 }

// redisWork counts the calls of scripts, and how often the server read from a client.
func redisWork(h *host, redis *servers.RedisServer) (w storeWork, err error) {
	for section, field := range map[string]*float64{"commandstats": &w.writes, "stats": &w.batches} {
		reply, err := redis.Do(h.ctx, "INFO", section)
		if err != nil {
			return w, err
		}
		text, _ := reply.(string)
		if section == "stats" {
			*field = redisField(text, "total_reads_processed")
			continue
		}
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
				digits, _, _ := strings.Cut(rest, ",")
				*field, _ = strconv.ParseFloat(digits, 64)
			}
		}
	}
	return w, nil
}

// postgresWork counts rows that were written, and transactions.
func postgresWork(h *host, postgres *servers.PostgresServer) (w storeWork, err error) {
	if w.writes, err = postgresNumber(h, postgres, "SELECT coalesce(sum(n_tup_upd + n_tup_ins), 0) FROM pg_stat_user_tables"); err != nil {
		return w, err
	}
	w.batches, err = postgresNumber(h, postgres, "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
	return w, err
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
