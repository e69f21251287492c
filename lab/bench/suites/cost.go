package suites

import (
	"errors"

	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/bench/report"
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
	o := load.Order{Connections: connections, Kind: kind, Program: costProgram, Warmup: p.options.warmup, Count: p.each}
	if connections == 1 {
		o.Count = max(p.each/costAloneShare, 1)
	}
	var samples []sample
	var cpus []float64
	values := map[string]float64{}
	for range costRepeats {
		var before counters
		var failed error
		s, err := p.take(v, o, func() { before, failed = read() })
		after, last := read()
		if err := errors.Join(err, failed, last); err != nil {
			return report.Row{}, err
		}
		samples, cpus = append(samples, s), append(cpus, s.cpu())
		for _, name := range []string{"bytes", "commands", "log_bytes"} {
			if value, ok := after[name]; ok {
				values[name] += (value - before[name]) / float64(o.Count) / costRepeats
			}
		}
	}
	for name, value := range values {
		values[name] = round3(value)
	}
	if middle := quantile(cpus, .5); middle > 0 {
		values["spread"] = round3((quantile(cpus, 1) - quantile(cpus, 0)) / middle)
	}
	row := rowOf(v, kind, connections, samples)
	row.Keys, row.Values = o.Count, values
	return row, nil
}
