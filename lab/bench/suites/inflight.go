package suites

import (
	"fmt"
	"time"

	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/bench/report"
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
	lease := "-lease " + b.ofHold(leaseShare).String()
	variants := []Variant{Reprise("nethttp", "memory", lease), Reprise("nethttp", "redis", lease), Reprise("nethttp", "postgres", lease)}
	return b.onFreshServers(h, suite, variants, func(p *place, v started, read meter) error {
		var without float64
		for _, kind := range []load.Kind{load.NoKey, load.New} {
			if kind == load.New { // a fresh process: Go's heap does not shrink at once
				var err error
				if v.server, err = p.start(v.Variant); err != nil {
					return err
				}
			}
			row, err := p.keep(v, kind, read)
			if err != nil {
				return err
			}
			if kind == load.NoKey {
				without = row.Values["server_bytes"]
			} else {
				row.Values["bytes_per_attempt"] = round3((row.Values["server_bytes"] - without) / float64(b.inflight))
			}
			suite.Rows = append(suite.Rows, row)
			p.print([]report.Row{row})
		}
		return nil
	})
}

// keep sends all requests, each on a separate connection, and measures while their
// handlers run.
func (p *place) keep(v started, kind load.Kind, read meter) (report.Row, error) {
	o := load.Order{
		Addr: v.server.addr, Connections: p.inflight, Kind: kind, Count: p.inflight,
		CountWrong: true,
		Rate:       float64(p.inflight) / p.ofHold(arrive).Seconds(),
		Program:    fmt.Sprintf(`{"delay_ms":%d,"status":201,"body":"held"}`, p.hold.Milliseconds()),
	}
	row := report.Row{Variant: v.Name, Kind: string(kind), Connections: p.inflight}
	looked := make(chan error, 1)
	r, err := p.load.Measure(o, func() {
		go func() { looked <- p.look(v, &row, read) }()
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
func (p *place) look(v started, row *report.Row, read meter) error {
	<-time.After(p.ofHold(allBegan))
	began, server, store := time.Now(), v.server.usage(p.host), p.storeUsage(v)
	before, err := read()
	if err != nil {
		return err
	}
	<-time.After(p.ofHold(allRun - allBegan))
	after, err := read()
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	row.Values = map[string]float64{
		"server_bytes":        float64(residentBytes(v.server.cmd.Process.Pid)),
		"server_cpu_percent":  round3(100 * v.server.usage(p.host).Since(server).Seconds() / seconds),
		"store_cpu_percent":   round3(100 * p.storeUsage(v).Since(store).Seconds() / seconds),
		"commands_per_second": round3((after["commands"] - before["commands"]) / seconds),
		"batches_per_second":  round3((after["batches"] - before["batches"]) / seconds),
	}
	return nil
}
