package report

import (
	"fmt"
	"strconv"
)

// target is a figure that the design asks for.
type target struct {
	id, what              string
	suite, variant, kind  string
	connections           int // 0: every number of them
	base                  string
	least, mostCPU, bytes float64 // ratio of requests, of CPU time, bytes a key; 0: none asked for
	added                 float64 // at most so many µs of CPU time more than the base; 0: none asked for
}

const (
	leased        = "nethttp+postgres"
	transactional = "nethttp+postgres-tx"
	combined      = "nethttp+redis"
	partitioned   = "nethttp+postgres, 16 partitions"
	oneByOne      = "nethttp+redis, one by one"
	fibersRedis   = "Fiber's own+redis"
)

// targets are those of throughput and of size, in the order of their numbers. Those of
// allocations, commands and statements are gated by tests.
var targets = []target{
	{id: "P2", what: "Redis, one by one: new key × raw2", suite: "redis", variant: oneByOne, kind: "new", connections: 64, base: "raw2", least: .95},
	{id: "P2", what: "Redis, one by one: replay × raw2", suite: "redis", variant: oneByOne, kind: "replay", connections: 64, base: "raw2", least: .92},
	{id: "P3", what: "Redis: new key × raw2", suite: "redis", variant: combined, kind: "new", connections: 64, base: "raw2", least: 1.5, mostCPU: .65},
	{id: "P3", what: "Redis: replay × raw2", suite: "redis", variant: combined, kind: "replay", connections: 64, base: "raw2", least: 1.3, mostCPU: .7},
	{id: "P3", what: "Redis: new key × one by one", suite: "redis", variant: combined, kind: "new", connections: 1, base: oneByOne, least: .95},
	{id: "P3", what: "Redis: new key × one by one", suite: "redis", variant: combined, kind: "new", connections: 2, base: oneByOne, least: .95},
	{id: "P3", what: "Redis: new key × one by one", suite: "redis", variant: combined, kind: "new", connections: 4, base: oneByOne, least: .95},
	{id: "P3", what: "Redis: new key × one by one", suite: "redis", variant: combined, kind: "new", connections: 8, base: oneByOne, least: .95},
	{id: "P3", what: "Redis: replay × one by one", suite: "redis", variant: combined, kind: "replay", connections: 1, base: oneByOne, least: .95},
	{id: "P3", what: "Redis: replay × one by one", suite: "redis", variant: combined, kind: "replay", connections: 2, base: oneByOne, least: .95},
	{id: "P3", what: "Redis: replay × one by one", suite: "redis", variant: combined, kind: "replay", connections: 4, base: oneByOne, least: .95},
	{id: "P3", what: "Redis: replay × one by one", suite: "redis", variant: combined, kind: "replay", connections: 8, base: oneByOne, least: .95},
	{id: "P3", what: "Redis behind a network, the worst case: new key × one by one", suite: "delay", variant: combined, kind: "new", base: oneByOne, least: .95},
	{id: "P6", what: "Fiber over Redis: new key × Fiber's own", suite: "fiber", variant: "Reprise+redis", kind: "new", connections: 64, base: fibersRedis, least: 2},
	{id: "P6", what: "Fiber over Redis: replay × Fiber's own", suite: "fiber", variant: "Reprise+redis", kind: "replay", connections: 64, base: fibersRedis, least: 1.6},
	{id: "P6", what: "Fiber over memory: new key, CPU µs more than Fiber", suite: "fiber", variant: "Reprise+memory", kind: "new", connections: 64, base: "Fiber v2", added: 4},
	{id: "P6", what: "Fiber over memory: replay, CPU µs more than Fiber", suite: "fiber", variant: "Reprise+memory", kind: "replay", connections: 64, base: "Fiber v2", added: 2.5},
	{id: "P7", what: "PostgreSQL: new key × INSERT and UPDATE", suite: "postgres", variant: leased, kind: "new", connections: 64, base: "statements", least: 2},
	{id: "P7", what: "PostgreSQL: replay × SELECT", suite: "postgres", variant: leased, kind: "replay", connections: 64, base: "statements", least: 1.6},
	{id: "P7", what: "PostgreSQL: new key × INSERT and UPDATE", suite: "postgres", variant: leased, kind: "new", connections: 8, base: "statements", least: .85},
	{id: "P7", what: "PostgreSQL: replay × SELECT", suite: "postgres", variant: leased, kind: "replay", connections: 8, base: "statements", least: .85},
	{id: "P7", what: "PostgreSQL: new key × INSERT and UPDATE", suite: "postgres", variant: leased, kind: "new", connections: 1, base: "statements", least: .7},
	{id: "P7", what: "PostgreSQL: replay × SELECT", suite: "postgres", variant: leased, kind: "replay", connections: 1, base: "statements", least: .8},
	{id: "P7", what: "behind PgBouncer: new key × INSERT and UPDATE", suite: "pooler", variant: leased, kind: "new", connections: 64, base: "statements", least: 1.1},
	{id: "P7", what: "behind PgBouncer: replay × SELECT", suite: "pooler", variant: leased, kind: "replay", connections: 64, base: "statements", least: .9},
	{id: "P8", what: "transactional: new key × INSERT and UPDATE", suite: "postgres", variant: transactional, kind: "new", connections: 64, base: "statements", least: .75},
	{id: "P8", what: "transactional, nothing but replays: replay × SELECT", suite: "postgres", variant: transactional, kind: "replay", connections: 64, base: "statements", least: 1},
	{id: "P8", what: "transactional, with an effect: new key × the handler's transaction", suite: "effect", variant: transactional, kind: "new", connections: 1, base: "handler's transaction", least: .91},
	{id: "P8", what: "transactional, with an effect: new key × the handler's transaction", suite: "effect", variant: transactional, kind: "new", connections: 64, base: "handler's transaction", least: .91},
	{id: "proxy", what: "over memory: no key × ReverseProxy", suite: "proxy", variant: "proxy+memory", kind: "no-key", connections: 64, base: "ReverseProxy", least: .9},
	{id: "proxy", what: "over Redis: no key × ReverseProxy", suite: "proxy", variant: "proxy+redis", kind: "no-key", connections: 64, base: "ReverseProxy", least: .9},
	{id: "P9", what: "Redis: bytes of a completed key, at most (with a field of the test server)", suite: "keys", variant: combined, kind: "new", bytes: 550},
}

// reached lists the targets beside the results.
func reached(results Results) string {
	t := newTable("", "target", "connections", "asked for", "measured")
	for _, g := range targets {
		rows := results[g.suite].Rows
		worst, found := Row{}, false
		for _, r := range rows {
			if _, compared := r.Ratios[g.base]; !compared && g.bytes == 0 || r.Variant != g.variant || r.Kind != g.kind || g.connections > 0 && r.Connections != g.connections {
				continue
			}
			if !found || g.worse(r, worst) {
				worst, found = r, true
			}
		}
		base, _ := results.row(g.suite, g.base, g.kind, worst.Connections)
		asked, measured := g.compare(worst, base)
		if !found {
			measured = "–"
		}
		at := "every number"
		if g.connections > 0 {
			at = strconv.Itoa(g.connections)
		}
		t.row(g.id, g.what, at, asked, measured)
	}
	return t.String()
}

// worse reports whether a row is further from the target than another.
func (g target) worse(a, b Row) bool {
	if g.bytes > 0 {
		return a.Values["bytes_per_key"] > b.Values["bytes_per_key"]
	}
	return a.Ratios[g.base].PerSecond < b.Ratios[g.base].PerSecond
}

// compare returns the target and the measurement of a row, which a target may compare
// with the row of its base.
func (g target) compare(r, base Row) (asked, measured string) {
	if g.added > 0 {
		return fmt.Sprintf("≤ %.1f", g.added), fmt.Sprintf("%.1f", r.CPU()-base.CPU())
	}
	if g.bytes > 0 {
		return fmt.Sprintf("≤ %.0f", g.bytes), fmt.Sprintf("%.0f", r.Values["bytes_per_key"])
	}
	x := r.Ratios[g.base]
	asked, measured = fmt.Sprintf("≥ %.2f", g.least), fmt.Sprintf("%.2f (%.2f–%.2f), CPU %.2f", x.PerSecond, x.Low, x.High, x.CPU)
	if g.mostCPU > 0 {
		asked += fmt.Sprintf(", CPU ≤ %.2f", g.mostCPU)
	}
	return asked, measured
}
