package suites

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/bench/report"
	"github.com/reprise-go/reprise/servers"
)

// Variant is a server under test.
type Variant struct {
	Name    string
	Program string   // its folder below the root, or its name where Build is set
	Build   Build    // nil for the programs of the lab
	Args    string   // with words in braces for values known when it starts: {redis}, {postgres}, {mysql}, {etcd}, {sqlite}, {upstream}, {pool}
	Store   string   // whose CPU time counts: redis, postgres, mysql, etcd or none
	Marked  bool     // it marks replays, as Reprise does
	Bases   []string // the names of the variants that it is compared with
}

// Bare is a framework without a middleware.
func Bare(framework string) Variant {
	return Variant{Name: framework, Program: floorsOf(framework)}
}

// floor is the least that a middleware over a store costs, on net/http.
func floor(name, kind, store string) Variant {
	program := floorsOf("nethttp")
	if store == "etcd" {
		program = "lab/etcd/floors"
	}
	return Variant{Name: name, Program: program, Args: "-floor " + kind + " " + urlOf(store), Store: store}
}

// Reprise is an adapter over a store of the lab's.
func Reprise(framework, store string, flags ...string) Variant {
	args := "-adapter " + framework + " -store " + store + " -store-timeout 30s" // a busy machine is slow, and not wrong
	served, program := store, testserverOf(framework)
	switch store {
	case "memory":
		args, served = args+" -max-records 20000000 -max-bytes 8589934592", ""
	case "postgres-tx":
		served = "postgres"
	case "mysql-tx":
		served = "mysql"
	case "etcd":
		program = "lab/etcd/testserver"
	case "sqlite", "sqlite-tx": // the file belongs to the process
		args, served = args+" -sqlite-file {sqlite}/"+store+".db", ""
	}
	if served != "" {
		args += " " + urlOf(served)
	}
	return Variant{Name: framework + "+" + store, Program: program, Args: strings.Join(append([]string{args}, flags...), " "), Store: served, Marked: true}
}

// bareProxy is the name of the variant that proxies are compared with.
const bareProxy = "ReverseProxy"

// proxied is "reprise proxy" over a store, in front of a server without a middleware.
func proxied(store string) Variant {
	v := Variant{
		Name: "proxy+" + store, Program: "cmd/reprise", Marked: true, Bases: []string{bareProxy},
		Args: "proxy --listen 127.0.0.1:0 --upstream http://{upstream} --unscoped --store ",
	}
	if store == "redis" {
		v.Store, store = store, "redis://{redis} --prefix bench:"
	}
	v.Args += store
	return v
}

// Over says which variants a variant is compared with.
func (v Variant) Over(bases ...string) Variant {
	v.Bases = bases
	return v
}

// called renames a variant.
func (v Variant) called(name string) Variant {
	v.Name = name
	return v
}

// urlOf returns the flags for the server of a store. Redis is reached over the client's
// default pool, ten connections a core, and etcd over one; PostgreSQL and MariaDB over
// the pool of the flag.
func urlOf(store string) string {
	switch store {
	case "redis":
		return "-redis-url redis://{redis}"
	case "etcd":
		return "-etcd-url {etcd}"
	}
	return "-" + store + "-url {" + store + "} -pool {pool}"
}

// Comparison is a suite that compares variants in shuffled rounds.
type Comparison struct {
	Name        string
	Variants    []Variant
	Connections []int // nil: those of the flag
	Delays      bool  // behind networks of those of the flag -delays
	Pooler      bool  // {postgres} is a PgBouncer
	Node        bool  // variants run on Node.js, which compiles while it runs: the first round is long
	Kinds       []load.Kind
	Program     string // of the test server's handler; empty: it does nothing
	Durable     bool   // PostgreSQL waits for its disk
}

// BothKinds are new keys and replays.
var BothKinds = []load.Kind{load.New, load.Replay}

// frameworks are the adapters of the lab, each of which is measured over adapterStores:
// in the process, over one that combines calls, over one that is a pool of connections,
// and in a transaction that reaches the handler through the framework's context. The cost
// of an adapter is the same over every other store, and the cost of a store the same
// under every adapter: the others are measured under net/http only, each in its suite.
var (
	frameworks    = []string{"nethttp", "gin", "echo", "echo5", "fiber", "fiber3"}
	adapterStores = []string{"memory", "redis", "postgres", "postgres-tx"}
)

// fewConnections are those of the suites of the stores that have no targets.
var fewConnections = []int{1, 8, 64}

// comparisons lists the suites that compare, in the order in which they run.
func comparisons() []Comparison {
	adapters := Comparison{Name: "adapters", Connections: []int{64}, Kinds: BothKinds}
	for _, f := range frameworks {
		adapters.Variants = append(adapters.Variants, Bare(f))
		for _, store := range adapterStores {
			adapters.Variants = append(adapters.Variants, Reprise(f, store).Over(f))
		}
	}
	const oneByOne = "nethttp+redis, one by one"
	alone := Reprise("nethttp", "redis", "-no-combining").called(oneByOne)
	combined := Reprise("nethttp", "redis")
	const exec = "-floor postgres -postgres-url {postgres}&default_query_exec_mode=exec -pool {pool}"
	return []Comparison{
		{
			Name: "redis", Kinds: BothKinds,
			Variants: []Variant{
				Bare("nethttp").Over("raw2"),
				floor("raw2", "redis", "redis").Over("nethttp"),
				floor("setnx", "setnx", "redis").Over("raw2", "nethttp"),
				combined.Over("raw2", "nethttp", "setnx", oneByOne),
				alone.Over("raw2", "nethttp", "setnx"),
			},
		},
		{
			Name: "postgres", Kinds: BothKinds,
			Variants: []Variant{
				Bare("nethttp").Over("statements"),
				floor("statements", "postgres", "postgres").Over("nethttp"),
				Reprise("nethttp", "postgres").Over("statements", "nethttp"),
				Reprise("nethttp", "postgres-tx").Over("statements", "nethttp"),
			},
		},
		{
			Name: "pooler", Connections: []int{64}, Kinds: BothKinds, Pooler: true,
			Variants: []Variant{
				{Name: "statements", Program: floorsOf("nethttp"), Args: exec, Store: "postgres"},
				Reprise("nethttp", "postgres").Over("statements"),
			},
		},
		{
			Name: "sqlite", Connections: fewConnections, Kinds: BothKinds,
			Variants: []Variant{
				Bare("nethttp").Over("rows"),
				{Name: "rows", Program: floorsOf("nethttp"), Args: "-floor sqlite -sqlite-file {sqlite}/rows.db", Bases: []string{"nethttp"}},
				Reprise("nethttp", "sqlite").Over("rows", "nethttp"),
				Reprise("nethttp", "sqlite-tx").Over("rows", "nethttp"),
				Reprise("nethttp", "memory").Over("rows", "nethttp"), // the other store without a server
			},
		},
		{
			Name: "mysql", Connections: fewConnections, Kinds: BothKinds,
			Variants: []Variant{
				Bare("nethttp").Over("mysql statements"),
				floor("mysql statements", "mysql", "mysql").Over("nethttp"),
				Reprise("nethttp", "mysql").Over("mysql statements", "nethttp"),
				Reprise("nethttp", "mysql-tx").Over("mysql statements", "nethttp"),
			},
		},
		{
			Name: "etcd", Connections: fewConnections, Kinds: BothKinds,
			Variants: []Variant{
				Bare("nethttp").Over("two Txns"),
				floor("two Txns", "etcd", "etcd").Over("nethttp"),
				Reprise("nethttp", "etcd").Over("two Txns", "nethttp"),
			},
		},
		{
			Name: "effect", Connections: []int{1, 64}, Kinds: []load.Kind{load.New}, Durable: true,
			Program: fmt.Sprintf(`{"effect":true,"status":%d,"body_size":%d}`, adaptertest.DefaultStatus, len(adaptertest.DefaultBody)),
			Variants: []Variant{
				floor("handler's transaction", "effect", "postgres"),
				floor("the same with a row of its key", "key", "postgres").Over("handler's transaction"),
				Reprise("nethttp", "postgres-tx").Over("handler's transaction", "the same with a row of its key"),
			},
		},
		adapters,
		{
			Name: "proxy", Connections: []int{1, 64}, Kinds: []load.Kind{load.NoKey, load.New, load.Replay},
			Variants: []Variant{
				{Name: bareProxy, Program: floorsOf("nethttp"), Args: "-floor forward -upstream {upstream}"},
				proxied("memory"), proxied("redis"),
			},
		},
		{
			Name: "delay", Connections: []int{1, 2, 4, 8, 64, 256}, Delays: true, Kinds: []load.Kind{load.New},
			Variants: []Variant{combined.Over(oneByOne), alone},
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
func (p *place) start(v Variant) (*server, error) {
	command, err := p.programs.command(p.host.ctx, v)
	if err != nil {
		return nil, err
	}
	command = slices.Clone(command)
	for word := range strings.FieldsSeq(v.Args) {
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
func (c Comparison) needs(store string) bool {
	return slices.ContainsFunc(c.Variants, func(v Variant) bool { return v.Store == store })
}

func (o options) words() map[string]string { return map[string]string{"pool": strconv.Itoa(o.pool)} }

// situation is the situation in which variants are compared.
type situation struct {
	kind        load.Kind
	connections int
	roundTrip   time.Duration
	delayed     bool // by a proxy, which adds roundTrip
	program     string
	long        bool // the first round, which does not count, lasts
}
