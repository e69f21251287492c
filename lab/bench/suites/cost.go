package suites

import (
	"errors"

	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/bench/report"
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

// costs measures every store.
func (b *bench) costs(h *host, suite *report.Suite) error {
	suite.Rounds, suite.Seconds = costRepeats, 0
	variants := []Variant{Bare("nethttp")}
	for _, store := range []string{"memory", "redis", "postgres", "postgres-tx", "mysql", "mysql-tx", "sqlite", "sqlite-tx", "etcd"} {
		variants = append(variants, Reprise("nethttp", store))
	}
	return b.onFreshServers(h, suite, variants, func(p *place, v started, read meter) error {
		for _, connections := range []int{1, costConnections} {
			for _, kind := range BothKinds {
				row, err := p.cost(v, kind, connections, read)
				if err != nil {
					return err
				}
				suite.Rows = append(suite.Rows, row)
				p.print([]report.Row{row})
			}
		}
		return nil
	})
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
		r, err := load.Run(p.host.ctx, o, func() {
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
		for _, name := range []string{"bytes", "commands", "log_bytes"} {
			value, ok := after[name]
			if !ok {
				continue
			}
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
