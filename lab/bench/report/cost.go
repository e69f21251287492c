package report

import (
	"fmt"
	"math"
)

// perDay is a million: the new keys of a day in the page about costs, and its replays.
const perDay = 1e6

// costOf finds the rows of a store in the suite cost: one request after the other, and at
// the peak.
func (r Results) costOf(variant, kind string) (alone, peak Row, ok bool) {
	alone, ok = r.row("cost", variant, kind, 1)
	peak, _ = r.row("cost", variant, kind, manyConnections)
	return alone, peak, ok
}

// day is the cost of a million new keys and a million replays a day on each store.
func day(results Results) string {
	t := newTable("store", "kept for 24 h, GB", "log written, GB", "commands, millions", "CPU of the service, s", "CPU of the store's server, s", "of one core", "new keys/s, replays/s at the peak, of this machine")
	for _, of := range byName {
		fresh, freshPeak, ok := results.costOf(of.variant, "new")
		replay, replayPeak, _ := results.costOf(of.variant, "replay")
		if !ok {
			t.row(of.name, "–", "–", "–", "–", "–", "–", "–")
			continue
		}
		bareNew, _, _ := results.costOf("nethttp", "new")
		bareReplay, _, _ := results.costOf("nethttp", "replay")
		service := math.Max(fresh.ServerCPU-bareNew.ServerCPU, 0) + math.Max(replay.ServerCPU-bareReplay.ServerCPU, 0)
		server := fresh.StoreCPU + replay.StoreCPU
		const seconds = perDay / 1e6 // of µs of a request, over a day
		t.row(
			of.name, gigabytes(freshPeak.Values["bytes"]*perDay), valueOf(freshPeak, "log_bytes", func(v float64) string { return gigabytes(v * perDay) }),
			valueOf(fresh, "commands", func(v float64) string { return fmt.Sprintf("%.1f", v+replay.Values["commands"]) }),
			fmt.Sprintf("%.0f", service*seconds), orDash(of.inServer(), fmt.Sprintf("%.0f", server*seconds)),
			fmt.Sprintf("%.2f %%", 100*(service+server)*seconds/86_400),
			fmt.Sprintf("%.0f, %.0f", freshPeak.PerSecond, replayPeak.PerSecond),
		)
	}
	return t.String()
}

// perKey is what the table of a day follows from.
func perKey(results Results) string {
	t := newTable("a request", "bytes kept, log", "commands", "CPU one after the other: service, store, µs", "CPU over 64 connections", "between repeats")
	for _, of := range append([]storeName{{name: "no middleware", variant: "nethttp"}}, byName...) {
		for _, kind := range []string{"new", "replay"} {
			alone, peak, ok := results.costOf(of.variant, kind)
			if !ok {
				continue
			}
			bytes := "–"
			if kind == "new" {
				bytes = valueOf(peak, "bytes", rounded) + ", " + valueOf(peak, "log_bytes", rounded)
			}
			cpu := func(r Row) string { return fmt.Sprintf("%.0f + %.0f", r.ServerCPU, r.StoreCPU) }
			t.row(of.name+", "+kindNames[kind], bytes, valueOf(alone, "commands", func(v float64) string { return fmt.Sprintf("%.1f", v) }),
				cpu(alone), cpu(peak), fmt.Sprintf("%.0f %%, %.0f %%", 100*alone.Values["spread"], 100*peak.Values["spread"]))
		}
	}
	return t.String()
}

// inServer reports whether the store has a server.
func (s storeName) inServer() bool { return s.variant != "nethttp+memory" && s.suite != "sqlite" }

func gigabytes(bytes float64) string { return fmt.Sprintf("%.1f", bytes/1e9) }

func rounded(v float64) string { return fmt.Sprintf("%.0f", v) }

// valueOf shows a value of a row, or a dash if it has none.
func valueOf(r Row, name string, show func(float64) string) string {
	v, ok := r.Values[name]
	return orDash(ok, show(v))
}

// The loads of the page about growth.
const (
	aBillion      = 1e9 // new keys a day, each kept for a day
	secondsOfADay = 86_400
	peakRequests  = 1e5 // a second, all with new keys
)

// slopes shows the cost of a store against its records.
func slopes(s Suite) string {
	t := newTable("", "records", "new key: p50, µs", "CPU of the store's server, µs", "replay: p50, µs", "CPU of the store's server, µs", "bytes a record", "of which indexes", "bytes of log a new key")
	for _, r := range s.Rows {
		if r.Kind != "new" {
			continue
		}
		replay, _ := find(s.Rows, func(other Row) bool {
			return other.Kind == "replay" && other.Variant == r.Variant && other.Values["at"] == r.Values["at"]
		})
		t.row(r.Variant, rounded(float64(r.Keys)), tens(r.P50), rounded(r.StoreCPU), tens(replay.P50), rounded(replay.StoreCPU), rounded(r.Values["bytes_per_key"]), valueOf(r, "index_bytes_per_key", rounded), valueOf(r, "log_bytes_per_key", rounded))
	}
	return t.String() + purgesOf(s)
}

// purgesOf shows how fast a store purges.
func purgesOf(s Suite) string {
	t, found := newTable("purge in batches of 1,000", "records in the table", "records/s", "CPU of the server a record, µs", "bytes of log a record"), false
	for _, r := range s.Rows {
		if r.Kind == "purge" {
			found = true
			t.row(r.Variant, rounded(float64(r.Keys)), rounded(r.PerSecond), fmt.Sprintf("%.1f", r.StoreCPU), valueOf(r, "log_bytes_per_key", rounded))
		}
	}
	if !found {
		return ""
	}
	return t.String()
}

// billion is the arithmetic from the largest number of records that was measured to 10⁹
// of them: it takes for granted that the slopes stay as they are.
func billion(results Results) string {
	t := newTable("10⁹ new keys a day", "kept, GB", "log a day, GB", "log a second on average, MB", "cores of the store's server: on average", "with 10⁵ new keys/s", "with 10⁵ replays/s", "purge: records/s, cores")
	rows := results["keys"].Rows
	for _, v := range []string{combined, leased, partitioned} {
		last, ok := largest(rows, v, "new")
		if !ok {
			continue
		}
		peak, replay := results.peakOf(v)
		purge := "–, by the server"
		if p, ok := largest(rows, v, "purge"); ok {
			needed := aBillion / secondsOfADay
			purge = fmt.Sprintf("%.0f, %.2f", needed, needed*p.StoreCPU/1e6)
		}
		log := func(per float64) string {
			return valueOf(last, "log_bytes_per_key", func(v float64) string { return fmt.Sprintf("%.0f", v*per) })
		}
		t.row(
			v, fmt.Sprintf("%.0f", last.Values["bytes_per_key"]), log(1), log(1e3/secondsOfADay),
			fmt.Sprintf("%.1f", aBillion/secondsOfADay*last.StoreCPU/1e6),
			orDash(peak > 0, fmt.Sprintf("%.1f", peakRequests*peak/1e6)), orDash(replay > 0, fmt.Sprintf("%.1f", peakRequests*replay/1e6)), purge,
		)
	}
	return t.String()
}

// peakOf returns the CPU time of the server of a store with 64 connections, for a new key
// and for a replay. It is 0 if it was not measured.
func (r Results) peakOf(variant string) (fresh, replay float64) {
	suite := map[string]string{combined: "redis", leased: "postgres"}[variant]
	a, _ := r.row(suite, variant, "new", manyConnections)
	b, _ := r.row(suite, variant, "replay", manyConnections)
	return a.StoreCPU, b.StoreCPU
}

// largest returns the row with the most records.
func largest(rows []Row, variant, kind string) (last Row, ok bool) {
	for _, r := range rows {
		if r.Variant == variant && r.Kind == kind && r.Keys > last.Keys {
			last, ok = r, true
		}
	}
	return last, ok
}
