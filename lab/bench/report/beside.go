package report

import (
	"fmt"
	"strings"
)

// besidePeers compares with other libraries: each pair is from one run.
func besidePeers(results Results) string {
	t := newTable("64 connections", "requests/s × theirs: new key, replay", "CPU of a request with a new key, µs: theirs, ours", "with a replay")
	for _, pair := range []struct{ what, suite, theirs, ours string }{
		{"Fiber v2's own over Redis", "fiber", fibersRedis, "Reprise+redis"},
		{"Fiber v2's own in memory", "fiber", "Fiber's own+memory", "Reprise+memory"},
		{"Fiber v3's own over Redis", "fiber3", fibersRedis, "Reprise+redis"},
		{"Fiber v3's own in memory", "fiber3", "Fiber's own+memory", "Reprise+memory"},
		{"`SET NX` by hand, as articles show it", "redis", "setnx", combined},
		{"idemlease 1.1 over Redis", "also", "idemlease+redis", combined},
		{"idemlease 1.1 in memory", "also", "idemlease+memory", "nethttp+memory"},
		{"@node-idempotency/core over Redis, on Express", "node", "@node-idempotency/core+redis", combined},
		{"@node-idempotency/core in memory, on Express", "node", "@node-idempotency/core+memory", "nethttp+memory"},
		{"express-idempotency in memory, on Express", "node", "express-idempotency+memory", "nethttp+memory"},
	} {
		var rates, cpus []string
		for _, kind := range []string{"new", "replay"} {
			theirs, ok := results.row(pair.suite, pair.theirs, kind, manyConnections)
			ours, _ := results.row(pair.suite, pair.ours, kind, manyConnections)
			ratio := ours.Ratios[pair.theirs].PerSecond
			if ratio == 0 && theirs.PerSecond > 0 {
				ratio = ours.PerSecond / theirs.PerSecond
			}
			rates = append(rates, orDash(ok, digits(ratio)))
			cpus = append(cpus, orDash(ok, fmt.Sprintf("%.0f, %.0f", theirs.CPU(), ours.CPU())))
		}
		t.row(pair.what, strings.Join(rates, ", "), cpus[0], cpus[1])
	}
	return t.String() + "\n" + results.where([]storeName{{suite: "fiber"}, {suite: "fiber3"}, {suite: "redis"}, {suite: "also"}, {suite: "node"}})
}

// besideFloors compares with the least that a store can cost.
func besideFloors(results Results) string {
	const connections = "1, 8, 64 connections"
	t := newTable("store", "floor", "new key, requests/s × floor: "+connections, "replay: "+connections)
	for _, of := range byName {
		if of.floor == "" {
			continue
		}
		cells := []string{of.name, of.floor}
		for _, kind := range []string{"new", "replay"} {
			var ratios []string
			for _, n := range []int{1, 8, manyConnections} {
				r, _ := results.row(of.suite, of.variant, kind, n)
				x, ok := r.Ratios[of.floor]
				ratios = append(ratios, orDash(ok, digits(x.PerSecond)))
			}
			cells = append(cells, strings.Join(ratios, ", "))
		}
		t.row(cells...)
	}
	return t.String() + "\n" + results.where(byName[1:])
}
