package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// figure is a variant that the page compares with a base, in a row for each kind of
// request.
type figure struct {
	what, suite, variant, base string
	asked                      map[string]target // by the kind of request; without any: new keys and replays
}

// target is what the design asks of one kind of request. Zero values ask for nothing.
type target struct {
	id    string
	least map[int]float64 // requests per second × the base, by connections
	cpu   float64         // at most: CPU time × the base, with 64 connections
	added float64         // at most: µs of CPU time more than the framework, with 64 connections
	bytes float64         // at most: of a completed key
}

// at asks for a ratio with some numbers of connections.
func at(least float64, connections ...int) map[int]float64 {
	all := map[int]float64{}
	for _, n := range connections {
		all[n] = least
	}
	return all
}

const (
	fresh     = "new"
	replay    = "replay"
	many      = 64 // connections of a busy service
	oneByOne  = "nethttp+redis, one by one"
	fibersOwn = "Fiber's own"
	inHandler = "handler's transaction"
)

// figures are the rows of the page. Tests gate the targets of allocations, commands and
// statements.
var figures = []figure{
	{"memory", "sqlite", "nethttp+memory", "nethttp", nil},
	{"Redis", "redis", "nethttp+redis", "raw2", map[string]target{
		fresh: {id: "P3", least: at(1.5, many), cpu: .65}, replay: {id: "P3", least: at(1.3, many), cpu: .7},
	}},
	{"Redis", "redis", "nethttp+redis", oneByOne, map[string]target{
		fresh: {id: "P3", least: at(.95, 1, 2, 4, 8)}, replay: {id: "P3", least: at(.95, 1, 2, 4, 8)},
	}},
	{"Redis behind networks of 0 to 30 ms, the worst", "delay", "nethttp+redis", oneByOne, map[string]target{fresh: {id: "P3", least: at(.95, 1, 2, 4, 8, many, 256)}}},
	{"Redis, one by one", "redis", oneByOne, "raw2", map[string]target{fresh: {id: "P2", least: at(.95, many)}, replay: {id: "P2", least: at(.92, many)}}},
	{"Redis, bytes of a completed key", "keys", "nethttp+redis", "", map[string]target{fresh: {id: "P9", bytes: 550}}},
	{"PostgreSQL", "postgres", "nethttp+postgres", "statements", map[string]target{
		fresh: {id: "P7", least: map[int]float64{1: .7, 8: .85, many: 2}}, replay: {id: "P7", least: map[int]float64{1: .8, 8: .85, many: 1.6}},
	}},
	{"PostgreSQL behind PgBouncer", "pooler", "nethttp+postgres", "statements", map[string]target{
		fresh: {id: "P7", least: at(1.1, many)}, replay: {id: "P7", least: at(.9, many)},
	}},
	{"PostgreSQL, transactional", "postgres", "nethttp+postgres-tx", "statements", map[string]target{
		fresh: {id: "P8", least: at(.75, many)}, replay: {id: "P8", least: at(1, many)},
	}},
	{"the same, with a row of the handler's", "effect", "nethttp+postgres-tx", inHandler, map[string]target{fresh: {id: "P8", least: at(.91, 1, many)}}},
	{"a row of the key by hand", "effect", "the same with a row of its key", inHandler, map[string]target{fresh: {}}},
	{"SQLite", "sqlite", "nethttp+sqlite", "rows", nil},
	{"SQLite, transactional", "sqlite", "nethttp+sqlite-tx", "rows", nil},
	{"MariaDB", "mysql", "nethttp+mysql", "mysql statements", nil},
	{"MariaDB, transactional", "mysql", "nethttp+mysql-tx", "mysql statements", nil},
	{"etcd", "etcd", "nethttp+etcd", "two Txns", nil},
	{"`reprise proxy` over memory", "proxy", "proxy+memory", "ReverseProxy", map[string]target{"no-key": {id: "proxy", least: at(.9, many)}, fresh: {}, replay: {}}},
	{"`reprise proxy` over Redis", "proxy", "proxy+redis", "ReverseProxy", map[string]target{"no-key": {id: "proxy", least: at(.9, many)}, fresh: {}, replay: {}}},
	{"memory, on Gin", "adapters", "gin+memory", "gin", nil},
	{"memory, on Echo", "adapters", "echo+memory", "echo", nil},
	{"memory, on Echo 5", "adapters", "echo5+memory", "echo5", nil},
	{"memory, on Fiber v2", "adapters", "fiber+memory", "fiber", nil},
	{"memory, on Fiber v3", "adapters", "fiber3+memory", "fiber3", nil},
	{"Redis", "redis", "nethttp+redis", "setnx", nil},
	{"Fiber v2 over Redis", "fiber", "Reprise+redis", fibersOwn + "+redis", map[string]target{
		fresh: {id: "P6", least: at(2, many)}, replay: {id: "P6", least: at(1.6, many)},
	}},
	{"Fiber v2 over memory", "fiber", "Reprise+memory", fibersOwn + "+memory", nil},
	{"Fiber v2 over memory", "fiber", "Reprise+memory", "Fiber v2", map[string]target{fresh: {id: "P6", added: 4}, replay: {id: "P6", added: 2.5}}},
	{"Fiber v3 over Redis", "fiber3", "Reprise+redis", fibersOwn + "+redis", nil},
	{"Fiber v3 over memory", "fiber3", "Reprise+memory", fibersOwn + "+memory", nil},
	{"Redis", "also", "nethttp+redis", "idemlease+redis", nil},
	{"memory", "also", "nethttp+memory", "idemlease+memory", nil},
	{"Redis", "node", "nethttp+redis", "@node-idempotency/core+redis", nil},
	{"memory", "node", "nethttp+memory", "@node-idempotency/core+memory", nil},
	{"memory", "node", "nethttp+memory", "express-idempotency+memory", nil},
}

var kindNames = map[string]string{"no-key": "no key", fresh: "new key", replay: "replay"}

// table returns the table of the page. A row has new keys and replays, or requests
// without a key.
func (r Results) table() string {
	var b strings.Builder
	b.WriteString("| Reprise over | beside | p50 more, µs | connections: requests/s × (middle half of the rounds) | of replays | CPU × | CPU, µs: it, ours | target |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, f := range figures {
		asked := f.asked
		if asked == nil {
			asked = map[string]target{fresh: {}, replay: {}}
		}
		for _, kinds := range [][]string{{"no-key"}, {fresh, replay}} {
			what, rates := f.what, [2]string{"–", "–"}
			if kinds[0] == "no-key" {
				what = f.what + ", no key"
			}
			var p50, cpu, used, targets []string
			for i, kind := range kinds {
				t, ok := asked[kind]
				if !ok {
					continue
				}
				c := r.cells(f, kind, t)
				p50, rates[i], cpu, used = append(p50, c.p50), cmp.Or(c.rates, "–"), append(cpu, c.cpu), append(used, c.used)
				if c.target != "" {
					targets = append(targets, kindNames[kind]+", "+c.target)
				}
			}
			if p50 != nil {
				cells := []string{what, cmp.Or(f.base, "–"), strings.Join(p50, ", "), rates[0], rates[1], strings.Join(cpu, ", "), strings.Join(used, "; "), strings.Join(targets, "<br>")}
				fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
			}
		}
	}
	return b.String()
}

// cells are what was measured of one kind of request, and its target. A dash stands for
// what was not measured.
type cells struct{ p50, rates, cpu, used, target string }

func (r Results) cells(f figure, kind string, t target) cells {
	c := cells{p50: "–", cpu: "–", used: "–"}
	if v, ok := r.added(f.suite, f.variant, f.base, kind); ok {
		c.p50 = tens(v)
	}
	var rates, asked, missed []string
	for _, n := range []int{1, 2, 4, 8, many, 256} {
		x, ok := r.ratio(f, kind, n)
		least, wanted := t.least[n]
		if ok && (wanted || n == 1 || n == 8 || n == many) {
			rates = append(rates, fmt.Sprintf("%d: %s (%s–%s)", n, digits(x.PerSecond), digits(x.Low), digits(x.High)))
		}
		if wanted {
			asked = append(asked, fmt.Sprintf("%d: ≥ %g", n, least))
			if ok && x.PerSecond < least {
				missed = append(missed, strconv.Itoa(n))
			}
		}
	}
	if x, ok := r.ratio(f, kind, many); ok {
		ours, _ := r.row(f.suite, f.variant, kind, many)
		theirs, _ := r.row(f.suite, f.base, kind, many)
		c.cpu, c.used = digits(x.CPU), fmt.Sprintf("%.0f, %.0f", theirs.CPU(), ours.CPU())
		asked, missed = limit(asked, missed, "CPU ×", t.cpu, x.CPU)
		asked, missed = limit(asked, missed, "CPU µs more", t.added, ours.CPU()-theirs.CPU())
	}
	if t.bytes > 0 {
		most := 0.0
		for _, row := range r[f.suite].Rows {
			if row.Variant == f.variant {
				most = max(most, row.Values["bytes_per_key"])
			}
		}
		rates = []string{fmt.Sprintf("%.0f bytes", most)}
		asked, missed = limit(asked, missed, "bytes", t.bytes, most)
	}
	c.rates = strings.Join(rates, "<br>")
	if len(asked) > 0 {
		c.target = t.id + ": " + strings.Join(asked, ", ")
		if len(missed) > 0 {
			c.target += ", **missed**: " + strings.Join(missed, ", ")
		}
	}
	return c
}

// limit adds a target that asks for at most a value, if it does.
func limit(asked, missed []string, name string, most, measured float64) (allAsked, allMissed []string) {
	if most == 0 {
		return asked, missed
	}
	if measured > most {
		missed = append(missed, fmt.Sprintf("%s %.3g", name, measured))
	}
	return append(asked, fmt.Sprintf("%s ≤ %g", name, most)), missed
}

// ratio compares a figure with its base: of several networks, the one where it is worst.
// Variants that the rounds do not compare are compared by their medians.
func (r Results) ratio(f figure, kind string, connections int) (worst Ratio, ok bool) {
	for _, row := range r[f.suite].Rows {
		x := row.Ratios[f.base]
		if row.Variant == f.variant && row.Kind == kind && row.Connections == connections && x.PerSecond > 0 && (!ok || x.PerSecond < worst.PerSecond) {
			worst, ok = x, true
		}
	}
	if ok {
		return worst, true
	}
	ours, found := r.row(f.suite, f.variant, kind, connections)
	theirs, base := r.row(f.suite, f.base, kind, connections)
	if !found || !base || theirs.PerSecond == 0 {
		return worst, false
	}
	x := ours.PerSecond / theirs.PerSecond
	return Ratio{PerSecond: x, Low: x, High: x, CPU: ours.CPU() / theirs.CPU()}, true
}

// added returns by how many microseconds the median of a variant with one connection is
// above that of the same server without it: of net/http, or of the base.
func (r Results) added(suite, variant, base, kind string) (float64, bool) {
	bare, ok := r.row(suite, "nethttp", kind, 1)
	if !ok {
		bare, ok = r.row(suite, base, kind, 1)
	}
	row, found := r.row(suite, variant, kind, 1)
	return row.P50 - bare.P50, ok && found && row.RoundTrip == ""
}

// row finds the row of a variant in a situation.
func (r Results) row(suite, variant, kind string, connections int) (Row, bool) {
	rows := r[suite].Rows
	i := slices.IndexFunc(rows, func(row Row) bool {
		return row.Variant == variant && row.Kind == kind && row.Connections == connections
	})
	if i < 0 {
		return Row{}, false
	}
	return rows[i], true
}

// tens rounds what is above a hundred to tens: more digits are noise.
func tens(v float64) string {
	if math.Abs(v) >= 100 {
		v = math.Round(v/10) * 10
	}
	return fmt.Sprintf("%.0f", v)
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
