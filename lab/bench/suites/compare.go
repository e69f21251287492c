package suites

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/bench/report"
	"github.com/reprise-go/reprise/servers"
)

// usageOf reads the CPU time of a server of a store.
type usageOf func(*host) servers.Usage

// postgresSettings are those of the server of every suite. Its log is not synced to the
// disk unless a suite asks for it, because the disk of a shared machine is no measure of
// anything.
var postgresSettings = []string{"max_connections=800", "shared_buffers=256MB", "max_wal_size=4GB", "checkpoint_timeout=15min", "autovacuum_naptime=10s"}

// compare runs a comparison, and adds its rows to the suite.
func (b *bench) compare(h *host, c Comparison, suite *report.Suite) error {
	p := &place{bench: b, host: h, words: b.words(), usage: map[string]usageOf{}, suite: suite}
	delays := []time.Duration{0}
	redisAddr := ""
	if c.needs("redis") {
		redisAddr = p.startRedis().Addr()
	}
	if c.needs("postgres") {
		b.startPostgres(p, c.Pooler, c.Durable)
	}
	if c.needs("mysql") {
		b.startMariaDB(p)
	}
	if c.needs("etcd") {
		if err := b.startEtcd(p); err != nil {
			return err
		}
	}
	if c.Name == "sqlite" {
		if err := p.folderForSQLite(); err != nil {
			return err
		}
	}
	if c.Name == "proxy" {
		upstream, err := p.start(Bare("nethttp"))
		if err != nil {
			return err
		}
		p.words["upstream"] = upstream.addr
	}
	if c.Delays {
		delays = b.delays
	}
	for _, delay := range delays {
		if c.Delays {
			p.words["redis"] = servers.StartDelayLine(h, redisAddr, delay).Addr()
		}
		if err := p.compareAt(c, delay); err != nil {
			return err
		}
	}
	return nil
}

func (p *place) startRedis() *servers.RedisServer {
	redis := servers.Redis.Start(p.host)
	p.words["redis"], p.suite.Machine.Redis = redis.Addr(), fmt.Sprint(redis.Version())
	p.usage["redis"] = func(h *host) servers.Usage { return redis.Usage(h) }
	return redis
}

func (p *place) folderForSQLite() error {
	dir, err := os.MkdirTemp("", "bench")
	p.host.Cleanup(func() { _ = os.RemoveAll(dir) })
	p.words["sqlite"] = dir
	return err
}

func (b *bench) startPostgres(p *place, pooler, durable bool, more ...string) {
	settings := slices.Concat(postgresSettings, more)
	if durable {
		settings = append(settings, "fsync=on", "synchronous_commit=on")
	}
	postgres := servers.StartPostgres(p.host, settings...)
	p.postgres, p.words["postgres"] = postgres, postgres.URL()
	p.usage["postgres"] = func(h *host) servers.Usage { return postgres.Usage(h) }
	if pooler {
		p.words["postgres"] = postgres.StartPgBouncer(p.host).URL()
	}
	if rows, err := postgres.Exec(p.host.ctx, "SHOW server_version"); err == nil {
		p.suite.Machine.Postgres = rows[0][0]
	}
}

// started is a variant that serves.
type started struct {
	Variant

	server *server
}

// compareAt compares in all situations behind one network.
func (p *place) compareAt(c Comparison, delay time.Duration) error {
	var all []started
	for _, v := range c.Variants {
		if !p.selected.MatchString(v.Name) {
			continue
		}
		s, err := p.start(v)
		if err != nil {
			p.leaveOut(fmt.Sprintf("%s: %v", v.Name, err))
			continue
		}
		all = append(all, started{v, s})
	}
	for _, n := range p.connectionsOf(c) {
		for _, kind := range c.Kinds {
			rows, err := p.rounds(all, situation{kind, n, delay, c.Delays, c.Program, c.Node})
			if err != nil {
				return err
			}
			p.suite.Rows = append(p.suite.Rows, rows...)
			p.print(rows)
		}
	}
	return nil
}

// loopback is about the time of a round trip without a delay.
const loopback = 50 * time.Microsecond

// sample is the result of a variant in one round.
type sample struct{ perSecond, server, store, p50, p99 float64 }

func (s sample) cpu() float64 { return s.server + s.store }

// rounds measures the variants in turn, in another order each round, and returns the
// medians. The first round warms them up and does not count.
func (p *place) rounds(all []started, at situation) ([]report.Row, error) {
	samples := make(map[string][]sample)
	for round := range p.options.rounds + 1 {
		at := at
		at.long = at.long && round == 0
		for _, i := range rand.Perm(len(all)) { //nolint:gosec // an order, no secret
			s, err := p.measure(all[i], at)
			if err != nil {
				return nil, fmt.Errorf("%s with %d connections: %w", all[i].Name, at.connections, err)
			}
			if round > 0 {
				samples[all[i].Name] = append(samples[all[i].Name], s)
			}
		}
	}
	var rows []report.Row
	for _, v := range all {
		list := samples[v.Name]
		row := rowOf(v, at.kind, at.connections, list)
		if at.delayed {
			row.RoundTrip = max(at.roundTrip, loopback).String()
		}
		for _, base := range v.Bases {
			if other := samples[base]; other != nil {
				if row.Ratios == nil {
					row.Ratios = map[string]report.Ratio{}
				}
				row.Ratios[base] = ratio(list, other)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// rowOf returns the medians of samples.
func rowOf(v started, kind load.Kind, connections int, list []sample) report.Row {
	median := func(of func(sample) float64) float64 {
		values := make([]float64, len(list))
		for i, s := range list {
			values[i] = of(s)
		}
		return quantile(values, .5)
	}
	return report.Row{
		Variant: v.Name, Kind: string(kind), Connections: connections,
		PerSecond: median(func(s sample) float64 { return s.perSecond }),
		ServerCPU: median(func(s sample) float64 { return s.server }),
		StoreCPU:  median(func(s sample) float64 { return s.store }),
		P50:       median(func(s sample) float64 { return s.p50 }),
		P99:       median(func(s sample) float64 { return s.p99 }),
	}
}

// ratio compares two variants round by round.
func ratio(list, base []sample) report.Ratio {
	rates, cpus := make([]float64, len(list)), make([]float64, len(list))
	for i := range list {
		rates[i] = list[i].perSecond / base[i].perSecond
		if base[i].cpu() > 0 {
			cpus[i] = list[i].cpu() / base[i].cpu()
		}
	}
	return report.Ratio{PerSecond: quantile(rates, .5), Low: quantile(rates, .25), High: quantile(rates, .75), CPU: round3(quantile(cpus, .5))}
}

// measure loads one variant.
func (p *place) measure(v started, at situation) (sample, error) {
	o := load.Order{Connections: at.connections, Kind: at.kind, Program: at.program, Warmup: p.options.warmup, Duration: max(p.options.time, 20*at.roundTrip)}
	if at.long {
		o.Warmup = 10 * o.Duration
	}
	return p.take(v, o, func() {})
}

// take loads one variant with an order, and calls begin right before the measurement.
func (p *place) take(v started, o load.Order, begin func()) (sample, error) {
	var server, store servers.Usage
	o.Addr, o.Marked = v.server.addr, v.Marked
	r, err := load.Run(p.host.ctx, o, func() {
		begin()
		server, store = v.server.usage(p.host), p.storeUsage(v)
	})
	if err != nil {
		return sample{}, err
	}
	serverUsed, storeUsed := v.server.usage(p.host).Since(server), p.storeUsage(v).Since(store)
	per := func(d time.Duration) float64 { return micros(d) / float64(r.Requests) }
	return sample{r.PerSecond(), per(serverUsed), per(storeUsed), micros(r.P50), micros(r.P99)}, nil
}

func (p *place) storeUsage(v started) servers.Usage {
	if of := p.usage[v.Store]; of != nil {
		return of(p.host)
	}
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// quantile interpolates between the values, which it sorts a copy of.
func quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	values = slices.Sorted(slices.Values(values))
	at := share * float64(len(values)-1)
	low := int(at)
	high := min(low+1, len(values)-1)
	return round3(values[low] + (values[high]-values[low])*(at-float64(low)))
}

// round3 keeps three digits behind the point: more are noise, and would change the file
// everywhere.
func round3(v float64) float64 { return float64(int64(v*1000+.5)) / 1000 }
