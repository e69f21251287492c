package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/bench/report"
	"github.com/reprise-go/reprise/lab/servers"
)

// variant is a server under test.
type variant struct {
	name    string
	program string
	args    string   // with words in braces for what is known when it starts: {redis}, {postgres}, {pool}
	store   string   // whose CPU time counts: redis, postgres or none
	marked  bool     // it marks replays, as Reprise does
	bases   []string // the names of the variants that it is compared with
}

// bare is a framework without a middleware.
func bare(framework string) variant {
	return variant{name: framework, program: floors, args: "-framework " + framework}
}

// floor is the least that a middleware over a store costs, on net/http.
func floor(name, kind, store string) variant {
	return variant{name: name, program: floors, args: "-floor " + kind + " " + urlOf(store), store: store}
}

// repriseOn is an adapter over a store of the lab's.
func repriseOn(framework, store string, flags ...string) variant {
	args := "-adapter " + framework + " -store " + store
	served := store
	switch store {
	case "memory":
		args, served = args+" -max-records 20000000 -max-bytes 8589934592", ""
	case "postgres-tx":
		served = "postgres"
	}
	if served != "" {
		args += " " + urlOf(served)
	}
	return variant{name: framework + "+" + store, program: testserver, args: strings.Join(append([]string{args}, flags...), " "), store: served, marked: true}
}

// over says which variants a variant is compared with.
func (v variant) over(bases ...string) variant {
	v.bases = bases
	return v
}

// called renames a variant.
func (v variant) called(name string) variant {
	v.name = name
	return v
}

// urlOf returns the flags for the server of a store. Redis is reached over the client's
// default pool, ten connections a core; PostgreSQL over the pool of the flag.
func urlOf(store string) string {
	if store == "redis" {
		return "-redis-url redis://{redis}"
	}
	return "-postgres-url {postgres} -pool {pool}"
}

// comparison is a suite that compares variants in shuffled rounds.
type comparison struct {
	name        string
	variants    []variant
	connections []int // nil: those of the flag
	delays      bool  // behind networks of those of the flag -delays
	pooler      bool  // {postgres} is a PgBouncer
	compiles    bool  // a variant compiles itself while it runs, and needs a long first round
	kinds       []load.Kind
}

var bothKinds = []load.Kind{load.New, load.Replay}

// frameworks are the adapters of the lab.
var frameworks = []string{"nethttp", "gin", "echo", "echo5", "fiber"}

// comparisons lists the suites that compare, in the order in which they run.
func comparisons() []comparison {
	adapters := comparison{name: "adapters", connections: []int{64}, kinds: bothKinds}
	for _, f := range frameworks {
		adapters.variants = append(adapters.variants, bare(f))
		for _, store := range []string{"memory", "redis", "postgres", "postgres-tx"} {
			adapters.variants = append(adapters.variants, repriseOn(f, store).over(f))
		}
	}
	const oneByOne = "nethttp+redis, one by one"
	alone := repriseOn("nethttp", "redis", "-no-combining").called(oneByOne)
	const exec = "-floor postgres -postgres-url {postgres}&default_query_exec_mode=exec -pool {pool}"
	return []comparison{
		{
			name: "redis", kinds: bothKinds,
			variants: []variant{
				bare("nethttp").over("raw2"),
				floor("raw2", "redis", "redis").over("nethttp"),
				floor("setnx", "setnx", "redis").over("raw2", "nethttp"),
				repriseOn("nethttp", "redis").over("raw2", "nethttp", "setnx", oneByOne),
				alone.over("raw2", "nethttp", "setnx"),
			},
		},
		{
			name: "postgres", kinds: bothKinds,
			variants: []variant{
				bare("nethttp").over("statements"),
				floor("statements", "postgres", "postgres").over("nethttp"),
				repriseOn("nethttp", "postgres").over("statements", "nethttp"),
				repriseOn("nethttp", "postgres-tx").over("statements", "nethttp"),
			},
		},
		{
			name: "pooler", connections: []int{64}, kinds: bothKinds, pooler: true,
			variants: []variant{
				{name: "statements", program: floors, args: exec, store: "postgres"},
				repriseOn("nethttp", "postgres").over("statements"),
			},
		},
		pools(),
		adapters,
		{
			name: "delay", connections: []int{1, 16, 64, 256}, delays: true, kinds: []load.Kind{load.New},
			variants: []variant{repriseOn("nethttp", "redis").over(oneByOne), alone},
		},
		fiberPeers(), nodePeers(),
	}
}

// pools compares over pools with fewer connections than there are requests.
func pools() comparison {
	c := comparison{name: "pools", connections: []int{64}, kinds: bothKinds}
	for _, n := range []string{"4", "16", "70"} {
		over := func(v variant) variant {
			v.args = strings.ReplaceAll(v.args, "{pool}", n)
			return v.called(v.name + ", pool of " + n)
		}
		base := over(floor("statements", "postgres", "postgres"))
		c.variants = append(c.variants, base,
			over(repriseOn("nethttp", "postgres")).over(base.name), over(repriseOn("nethttp", "postgres-tx")).over(base.name))
	}
	return c
}

// fiberPeers compares with the middlewares that Fiber brings along.
func fiberPeers() comparison {
	const inMemory, inRedis = "Fiber's own+memory", "Fiber's own+redis"
	v2 := func(name, kind string) variant {
		return variant{name: name, program: fiberv2, args: "-variant " + kind}
	}
	withRedis := func(name, kind string) variant {
		return variant{name: name, program: fiberv2, args: "-variant " + kind + " -redis {redis}", store: "redis"}
	}
	ours := func(v variant) variant {
		v.marked = true
		return v
	}
	return comparison{
		name: "fiber", connections: []int{64}, kinds: bothKinds,
		variants: []variant{
			v2("Fiber v2", "bare"),
			v2("floor+memory", "floor-memory").over(inMemory, "Fiber v2"),
			v2(inMemory, "own-memory").over("Fiber v2"),
			ours(v2("Reprise+memory", "reprise-memory")).over(inMemory, "Fiber v2"),
			withRedis(inRedis, "own-redis").over("Fiber v2"),
			ours(withRedis("Reprise+redis", "reprise-redis")).over(inRedis, "Fiber v2"),
			ours(withRedis("Reprise+redis, one by one", "alone-redis")).over(inRedis, "Fiber v2"),
			{name: "Fiber v3", program: fiberv3, args: "-variant bare"},
			{name: "Fiber v3's own+memory", program: fiberv3, args: "-variant own-memory", bases: []string{"Fiber v3"}},
		},
	}
}

// nodePeers compares what two packages of npm and Reprise cost over their frameworks.
func nodePeers() comparison {
	on := func(name, args, store string) variant {
		return variant{name: name, program: node, args: args, store: store, bases: []string{"Express"}}
	}
	return comparison{
		name: "node", compiles: true, connections: []int{64}, kinds: bothKinds,
		variants: []variant{
			{name: "Express", program: node, args: "bare"},
			on("@node-idempotency/core+memory", "node-idempotency-memory", ""),
			on("@node-idempotency/core+redis", "node-idempotency-redis {redis}", "redis"),
			on("express-idempotency+memory", "express-idempotency", ""),
			bare("nethttp").over("Express"),
			repriseOn("nethttp", "memory").over("nethttp", "@node-idempotency/core+memory"),
			repriseOn("nethttp", "redis").over("nethttp", "@node-idempotency/core+redis"),
		},
	}
}

// place is where the variants of a suite run: the stores, and how to reach them.
type place struct {
	*bench

	host  *host
	words map[string]string // for the arguments
	usage map[string]usageOf
	suite *report.Suite

	postgres *servers.PostgresServer // nil: not started
}

// start starts a variant.
func (p *place) start(v variant) (*server, error) {
	command, err := p.programs.command(p.host.ctx, v.program)
	if err != nil {
		return nil, err
	}
	command = slices.Clone(command)
	for word := range strings.FieldsSeq(v.args) {
		for name, value := range p.words {
			word = strings.ReplaceAll(word, "{"+name+"}", value)
		}
		if strings.Contains(word, "{") {
			return nil, fmt.Errorf("the suite has no server for %s", word)
		}
		command = append(command, word)
	}
	return startServer(p.host, command)
}

// needs reports whether a variant of a suite uses a store.
func (c comparison) needs(store string) bool {
	return slices.ContainsFunc(c.variants, func(v variant) bool { return v.store == store })
}

func (o options) words() map[string]string { return map[string]string{"pool": strconv.Itoa(o.pool)} }

// situation is what the variants are compared in.
type situation struct {
	kind        load.Kind
	connections int
	roundTrip   time.Duration
	delayed     bool // by a proxy, of which roundTrip is what it adds
	long        bool // the first round, which does not count, lasts
}
