package suites

import (
	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/bench/report"
)

// growth fills stores with completed keys, and measures at each number of keys the size
// of a key and the latency of a new one and of a replay with eight connections.
func (b *bench) growth(h *host, suite *report.Suite) error {
	return b.onFreshServers(h, suite, []Variant{Reprise("nethttp", "redis"), Reprise("nethttp", "postgres")}, (*place).grow)
}

// grow measures one store.
func (p *place) grow(v started, read meter) error {
	const fillers = 64
	fill := load.Order{Addr: v.server.addr, Connections: fillers, Kind: load.New, Count: fillers, Marked: true}
	if _, err := load.Run(p.host.ctx, fill, func() {}); err != nil { // scripts, statements, connections
		return err
	}
	empty, err := read()
	if err != nil {
		return err
	}
	last := empty
	for _, keys := range p.keys {
		now, err := read()
		if err != nil {
			return err
		}
		if fill.Count = keys - int(now["records"]-empty["records"]); fill.Count > 0 {
			if _, err := load.Run(p.host.ctx, fill, func() {}); err != nil {
				return err
			}
			if now, err = read(); err != nil {
				return err
			}
		}
		values := map[string]float64{"at": float64(keys)}
		each := func(name, of string, since counters) {
			if added := now["records"] - since["records"]; now[of] > since[of] && added > 0 {
				values[name] = round3((now[of] - since[of]) / added)
			}
		}
		each("bytes_per_key", "bytes", empty)
		each("index_bytes_per_key", "index_bytes", empty)
		each("log_bytes_per_key", "log_bytes", last) // by the replays and new keys of the measurement before, too
		last = now
		for _, kind := range BothKinds {
			rows, err := p.rounds([]started{v}, situation{kind: kind, connections: 8})
			if err != nil {
				return err
			}
			rows[0].Keys, rows[0].Values = int(now["records"]), values
			p.suite.Rows = append(p.suite.Rows, rows...)
			p.print(rows)
		}
	}
	return nil
}
