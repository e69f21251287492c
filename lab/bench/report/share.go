package report

import (
	"fmt"
	"strings"
)

// overStores are the variants of net/http over a store that the tables about all stores
// list, by the suite that measures them.
var overStores = []struct {
	suite    string
	variants []string
	inside   bool // the server under test, which has no other
}{
	{suite: "redis", variants: []string{"raw2", combined, oneByOne}},
	{suite: "postgres", variants: []string{"statements", leased, transactional}},
	{suite: "sqlite", variants: []string{"rows", "nethttp+sqlite", "nethttp+sqlite-tx"}, inside: true},
	{suite: "mysql", variants: []string{"mysql statements", "nethttp+mysql", "nethttp+mysql-tx"}},
	{suite: "etcd", variants: []string{"two Txns", "nethttp+etcd"}},
}

// added lists what a store adds to the median latency of a request: one connection, and
// so no load.
func added(results Results) string {
	t := newTable("p50 with 1 connection, more than without a middleware, ms", "new key", "replay")
	for _, of := range overStores {
		for _, v := range of.variants {
			cells := []string{v}
			for _, kind := range []string{"new", "replay"} {
				cells = append(cells, results.adds(of.suite, v, kind))
			}
			t.row(cells...)
		}
	}
	return t.String()
}

// adds returns by how many milliseconds the median of a variant with one connection is
// above that of net/http alone.
func (r Results) adds(suite, variant, kind string) string {
	bare, _ := r.row(suite, "nethttp", kind, 1)
	row, ok := r.row(suite, variant, kind, 1)
	return orDash(ok, fmt.Sprintf("%.2f", (row.P50-bare.P50)/1000))
}

// share lists the CPU time that the server of a store spends on a request.
func share(results Results) string {
	t := newTable("CPU time of the store's server for a request, µs", "new key with 1, 8, 64 connections", "replay with 1, 8, 64")
	for _, of := range overStores {
		if of.inside {
			continue
		}
		for _, v := range of.variants {
			var cpu [2][]string
			for i, kind := range []string{"new", "replay"} {
				for _, n := range []int{1, 8, manyConnections} {
					r, ok := results.row(of.suite, v, kind, n)
					cpu[i] = append(cpu[i], orDash(ok, fmt.Sprintf("%.0f", r.StoreCPU)))
				}
			}
			t.row(v, strings.Join(cpu[0], ", "), strings.Join(cpu[1], ", "))
		}
	}
	return t.String()
}

func orDash(ok bool, cell string) string {
	if !ok {
		return "–"
	}
	return cell
}

// row finds the row of a variant in a situation.
func (r Results) row(suite, variant, kind string, connections int) (Row, bool) {
	return find(r[suite].Rows, func(row Row) bool {
		return row.Variant == variant && row.Kind == kind && row.Connections == connections
	})
}
