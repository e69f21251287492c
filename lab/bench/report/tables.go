package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// tables has the function that makes the tables of each suite.
var tables = map[string]func(Suite) string{
	"redis":     func(s Suite) string { return growing(s, "raw2") },
	"postgres":  func(s Suite) string { return growing(s, "statements") },
	"sqlite":    func(s Suite) string { return growing(s, "rows") },
	"mysql":     func(s Suite) string { return growing(s, "mysql statements") },
	"etcd":      func(s Suite) string { return growing(s, "two Txns") },
	"pools":     absolute,
	"effect":    absolute,
	"pooler":    absolute,
	"adapters":  absolute,
	"proxy":     func(s Suite) string { return growing(s, "ReverseProxy") + more(s, "ReverseProxy") },
	"fiber":     absolute,
	"fiber3":    absolute,
	"node":      absolute,
	"delay":     byDelay,
	"cost":      func(s Suite) string { return perKey(Results{"cost": s}) },
	"sustained": sustained,
	"inflight":  inFlight,
	"keys":      slopes,
}

// table is a table of Markdown.
type table struct{ strings.Builder }

func newTable(columns ...string) *table {
	t := new(table)
	t.WriteString("\n")
	t.row(columns...)
	t.row(slices.Repeat([]string{"---"}, len(columns))...)
	return t
}

func (t *table) row(cells ...string) { t.WriteString("| " + strings.Join(cells, " | ") + " |\n") }

// growing compares with a floor over the numbers of connections, and adds the absolute
// figures of one of them.
func growing(s Suite, base string) string {
	var b strings.Builder
	connections := distinct(s.Rows, func(r Row) int { return r.Connections })
	for _, kind := range distinct(s.Rows, func(r Row) string { return r.Kind }) {
		columns := []string{kindNames[kind] + ", × " + base}
		for _, n := range connections {
			columns = append(columns, count(n, "connection"))
		}
		t := newTable(columns...)
		for _, v := range distinct(s.Rows, func(r Row) string { return r.Variant }) {
			if v == base {
				continue
			}
			cells := []string{v}
			for _, n := range connections {
				r, _ := find(s.Rows, func(r Row) bool { return r.Variant == v && r.Kind == kind && r.Connections == n })
				ratio := r.Ratios[base]
				cells = append(cells, fmt.Sprintf("%.2f, CPU %.2f", ratio.PerSecond, ratio.CPU))
			}
			t.row(cells...)
		}
		b.WriteString(t.String())
	}
	b.WriteString(absolute(s))
	return b.String()
}

// more lists the time and the CPU time that a request takes beyond that of a base.
func more(s Suite, base string) string {
	t := newTable("more than "+base, "connections", "p50, µs", "server + store, CPU µs")
	for _, r := range s.Rows {
		b, ok := find(s.Rows, func(b Row) bool { return b.Variant == base && b.Kind == r.Kind && b.Connections == r.Connections })
		if ok && r.Variant != base {
			t.row(r.Variant+", "+kindNames[r.Kind], strconv.Itoa(r.Connections), fmt.Sprintf("%.0f", r.P50-b.P50), fmt.Sprintf("%.0f", r.CPU()-b.CPU()))
		}
	}
	return t.String()
}

var kindNames = map[string]string{"new": "new key", "replay": "replay", "no-key": "no key"}

// manyConnections are those of the tables with absolute figures.
const manyConnections = 64

// absolute lists the results with many connections.
func absolute(s Suite) string {
	var b strings.Builder
	for _, kind := range distinct(s.Rows, func(r Row) string { return r.Kind }) {
		t := newTable(fmt.Sprintf("%s, %s", kindNames[kind], count(manyConnections, "connection")), "requests/s", "server + store, CPU µs", "p50, p99 ms", "requests/s compared (middle half of the rounds)")
		for _, r := range s.Rows {
			if r.Kind != kind || r.Connections != manyConnections {
				continue
			}
			var compared []string
			for _, base := range keys(r.Ratios) {
				x := r.Ratios[base]
				compared = append(compared, fmt.Sprintf("%s × %s (%s–%s)", digits(x.PerSecond), base, digits(x.Low), digits(x.High)))
			}
			t.row(r.Variant, strconv.Itoa(int(r.PerSecond/10+.5)*10), fmt.Sprintf("%.0f + %.0f", r.ServerCPU, r.StoreCPU),
				fmt.Sprintf("%.1f, %.1f", r.P50/1000, r.P99/1000), strings.Join(compared, "<br>"))
		}
		b.WriteString(t.String())
	}
	return b.String()
}

// digits shows a ratio with two digits that mean something.
func digits(x float64) string {
	switch {
	case x >= 10:
		return fmt.Sprintf("%.0f", x)
	case x >= 0.095:
		return fmt.Sprintf("%.2f", x)
	default:
		return fmt.Sprintf("%.3f", x)
	}
}

// byDelay compares over networks, in a table for each variant to compare with.
func byDelay(s Suite) string {
	compared := slices.DeleteFunc(slices.Clone(s.Rows), func(r Row) bool { return len(r.Ratios) == 0 })
	connections := distinct(compared, func(r Row) int { return r.Connections })
	var b strings.Builder
	for _, base := range distinct(s.Rows, func(r Row) string { return r.Variant }) {
		columns := []string{"× " + base + ", added round trip"}
		for _, n := range connections {
			columns = append(columns, count(n, "connection"))
		}
		t, found := newTable(columns...), false
		for _, trip := range distinct(compared, func(r Row) string { return r.RoundTrip }) {
			cells := []string{trip}
			for _, n := range connections {
				r, _ := find(compared, func(r Row) bool { return r.RoundTrip == trip && r.Connections == n })
				ratio, ok := r.Ratios[base]
				found = found || ok
				cells = append(cells, fmt.Sprintf("%.2f (%.2f–%.2f)", ratio.PerSecond, ratio.Low, ratio.High))
			}
			t.row(cells...)
		}
		if found {
			b.WriteString(t.String())
		}
	}
	return b.String()
}

// sustained shows the results of an hour at a fixed rate.
func sustained(s Suite) string {
	t := newTable("at a fixed rate", "requests/s", "server + store, CPU µs", "p50, p99, ms", "worst p99 of a window, ms, and cores that other processes used in it", "updates that are HOT", "WAL bytes a request", "table and indexes, kB", "rows alive, dead", "autovacuums", "purged, per second of purging")
	for _, r := range s.Rows {
		v := r.Values
		purged := "–"
		if v["purged"] > 0 {
			purged = fmt.Sprintf("%.0f, %.0f", v["purged"], v["purged_per_second"])
		}
		t.row(r.Variant, fmt.Sprintf("%.0f", r.PerSecond), fmt.Sprintf("%.0f + %.0f", r.ServerCPU, r.StoreCPU),
			fmt.Sprintf("%.1f, %.1f", r.P50/1000, r.P99/1000), fmt.Sprintf("%.1f, %.1f", v["worst_p99_us"]/1000, v["worst_others_cores"]), fmt.Sprintf("%.0f %%", 100*v["hot_share"]),
			fmt.Sprintf("%.0f", v["wal_bytes_per_request"]), fmt.Sprintf("%.0f", v["table_bytes"]/1024),
			fmt.Sprintf("%.0f, %.0f", v["live_rows"], v["dead_rows"]), fmt.Sprintf("%.0f", v["autovacuums"]), purged)
	}
	return t.String()
}

// inFlight shows the cost of requests in flight.
func inFlight(s Suite) string {
	t := newTable("", "requests held", "memory of the server, MB", "more than without keys, kB a request", "CPU while they are held: server, store", "renewals/s", "batches/s", "answers other than the handler's")
	for _, r := range s.Rows {
		v := r.Values
		more := "–"
		if v["bytes_per_attempt"] > 0 {
			more = fmt.Sprintf("%.1f", v["bytes_per_attempt"]/1000)
		}
		t.row(r.Variant+", "+kindNames[r.Kind], strconv.Itoa(r.Connections), fmt.Sprintf("%.0f", v["server_bytes"]/1e6), more,
			fmt.Sprintf("%.1f %%, %.1f %%", v["server_cpu_percent"], v["store_cpu_percent"]),
			fmt.Sprintf("%.0f", v["writes_per_second"]), fmt.Sprintf("%.0f", v["batches_per_second"]), others(r.Others))
	}
	return t.String()
}

// others lists responses by their status and code.
func others(counts map[string]int64) string {
	list := []string{}
	for _, answer := range keys(counts) {
		list = append(list, fmt.Sprintf("%d × %s", counts[answer], answer))
	}
	return cmp.Or(strings.Join(list, "<br>"), "none")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// distinct returns the values of rows in the order in which they come first.
func distinct[T comparable](rows []Row, of func(Row) T) []T {
	var values []T
	for _, r := range rows {
		if v := of(r); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

func find(rows []Row, match func(Row) bool) (Row, bool) {
	i := slices.IndexFunc(rows, match)
	if i < 0 {
		return Row{}, false
	}
	return rows[i], true
}

func keys[V any](m map[string]V) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	slices.SortFunc(list, cmp.Compare[string])
	return list
}
