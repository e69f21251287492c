package report

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// storeName is a store as the first table of the page and the page about costs name it.
type storeName struct {
	name           string
	suite, variant string
	floor          string // of its suite
	trips          [2]string
}

// byName lists the stores. Tests of the lab gate their round trips.
var byName = []storeName{
	{"memory", "sqlite", "nethttp+memory", "", [2]string{"0", "0"}},
	{"Redis", "redis", combined, "raw2", [2]string{"2", "1"}},
	{"PostgreSQL", "postgres", leased, "statements", [2]string{"2", "1"}},
	{"PostgreSQL, transactional", "postgres", transactional, "statements", [2]string{"none besides the handler's transaction", "2"}},
	{"SQLite", "sqlite", "nethttp+sqlite", "rows", [2]string{"0", "0"}},
	{"SQLite, transactional", "sqlite", "nethttp+sqlite-tx", "rows", [2]string{"0", "0"}},
	{"MariaDB", "mysql", "nethttp+mysql", "mysql statements", [2]string{"4", "1"}},
	{"MariaDB, transactional", "mysql", "nethttp+mysql-tx", "mysql statements", [2]string{"12 besides the handler's transaction", "1"}},
	{"etcd", "etcd", "nethttp+etcd", "two Txns", [2]string{"2", "1"}},
}

// addition is by how much the requests of a variant are above those of net/http alone.
type addition struct{ p50, p99, cpu float64 }

func (r Results) addition(of storeName, kind string) (addition, bool) {
	bare, _ := r.row(of.suite, "nethttp", kind, 1)
	row, ok := r.row(of.suite, of.variant, kind, 1)
	return addition{row.P50 - bare.P50, row.P99 - bare.P99, row.CPU() - bare.CPU()}, ok
}

// adds is the first table of the page, with its picture.
func adds(results Results) string {
	var b strings.Builder
	var alt []string
	t := newTable("store", "round trips: new key, replay", "new key: p50, p99, µs", "replay: p50, p99, µs", "CPU, service and store: new key, replay, µs")
	for _, of := range byName {
		fresh, ok := results.addition(of, "new")
		replay, _ := results.addition(of, "replay")
		if !ok {
			t.row(of.name, of.trips[0]+"; "+of.trips[1], "–", "–", "–")
			continue
		}
		t.row(of.name, of.trips[0]+"; "+of.trips[1], tens(fresh.p50)+", "+tens(fresh.p99), tens(replay.p50)+", "+tens(replay.p99), tens(fresh.cpu)+", "+tens(replay.cpu))
		alt = append(alt, fmt.Sprintf("%s %s and %s", of.name, tens(fresh.p50), tens(replay.p50)))
	}
	b.WriteString(t.String())
	b.WriteString("\n" + pictureOf("adds", "Microseconds that a store adds to a new key and to a replay: "+strings.Join(alt, "; ")))
	b.WriteString("\n" + results.where(byName))
	return b.String()
}

// where says where the numbers of several suites come from.
func (r Results) where(stores []storeName) string {
	var runs, versions []string
	var m Machine
	for _, of := range stores {
		s, ok := r[of.suite]
		if !ok {
			continue
		}
		m = s.Machine
		if run := fmt.Sprintf("%#q on %s at %s (load average before it %.1f)", of.suite, s.Date, s.Commit, m.Load); !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
		for _, v := range m.versions() {
			if !slices.Contains(versions, v) {
				versions = append(versions, v)
			}
		}
	}
	return fmt.Sprintf("Measured on %d cores (%s) with %s; suites %s.\n", m.Cores, m.CPU, strings.Join(append([]string{m.Go}, versions...), ", "), strings.Join(runs, ", "))
}

// tens rounds what is above a hundred to tens: more digits are noise.
func tens(v float64) string {
	if math.Abs(v) >= 100 {
		v = math.Round(v/10) * 10
	}
	return fmt.Sprintf("%.0f", v)
}

// line is the sentence of the README.
func (r Results) line() string {
	var parts []string
	for _, over := range []struct{ store, words string }{{"Redis", "over Redis"}, {"PostgreSQL", "over PostgreSQL"}, {"memory", "in memory"}} {
		of := byName[slices.IndexFunc(byName, func(s storeName) bool { return s.name == over.store })]
		fresh, ok := r.addition(of, "new")
		replay, _ := r.addition(of, "replay")
		if !ok {
			continue
		}
		switch {
		case len(parts) == 0:
			parts = append(parts, fmt.Sprintf("%.2f ms to a new key and %.2f ms to a replay %s", fresh.p50/1000, replay.p50/1000, over.words))
		case fresh.p50 < 100:
			parts = append(parts, fmt.Sprintf("%.0f and %.0f µs %s", fresh.p50, replay.p50, over.words))
		default:
			parts = append(parts, fmt.Sprintf("%.2f and %.2f ms %s", fresh.p50/1000, replay.p50/1000, over.words))
		}
	}
	s := r["redis"]
	return fmt.Sprintf("It adds %s (median, one connection, loopback, %d cores, %s); your network's round trips come on top, two for a new key and one for a replay.",
		strings.Join(parts, ", "), s.Machine.Cores, s.Date)
}

// bars draws the latency that each store adds, on a logarithmic scale.
func bars(results Results, t theme) string {
	const line, x0, w = 46, 220, 560
	type bar struct {
		name  string
		value [2]float64
	}
	var list []bar
	for _, of := range byName {
		fresh, ok := results.addition(of, "new")
		replay, _ := results.addition(of, "replay")
		if ok {
			list = append(list, bar{of.name, [2]float64{math.Max(fresh.p50, 1), math.Max(replay.p50, 1)}})
		}
	}
	high := 70 + line*len(list) + 50
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" font-family="system-ui, sans-serif" font-size="14">`+"\n", width, high)
	b.WriteString("<title>Microseconds that each store adds to a request: median, one connection, loopback</title>\n<desc>Two bars a store, of a new key and of a replay, on a logarithmic scale.</desc>\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="%s"/>`+"\n", width, high, t.paper)
	for i, name := range []string{"new key", "replay"} {
		fmt.Fprintf(&b, `<rect x="%d" y="22" width="18" height="14" fill="%s"/><text x="%d" y="34" fill="%s">%s</text>`+"\n", x0+i*120, t.lines[i], x0+24+i*120, t.ink, name)
	}
	fmt.Fprintf(&b, `<text x="%d" y="34" fill="%s">median of what each adds, logarithmic</text>`+"\n", x0+260, t.ink)
	x := func(v float64) float64 { return x0 + w*math.Log10(math.Max(v, 10)/10)/3 }
	for _, v := range []float64{10, 100, 1000, 10_000} {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="54" x2="%.1f" y2="%d" stroke="%s"/>`+"\n", x(v), x(v), high-40, t.faint)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="%s" text-anchor="middle">%.0f µs</text>`+"\n", x(v), high-18, t.ink, v)
	}
	for i, of := range list {
		y := 62 + i*line
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s" text-anchor="end">%s</text>`+"\n", x0-12, y+22, t.ink, html.EscapeString(of.name))
		for k, v := range of.value {
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="15" fill="%s"/><text x="%.1f" y="%d" fill="%s" font-size="13">%s</text>`+"\n",
				x0, y+k*18, math.Max(x(v)-x0, 2), t.lines[k], math.Max(x(v), x0+2)+6, y+k*18+13, t.ink, tens(v))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}
