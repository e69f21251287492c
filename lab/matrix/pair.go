// Package matrix runs the smoke cases on every store × every adapter, through processes
// of the test servers, and writes the sheet, docs/engineering/conformance.md.
package matrix

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/servers"
)

// Adapters are the columns of the matrix. The folder below lab of each has its test
// server.
var Adapters = []string{"nethttp", "gin", "echo", "echo5", "fiber", "fiber3"}

// Store is a row of the matrix: a store that every adapter is served over.
type Store struct {
	Name   string // of the flag -store
	Atomic bool   // effects commit with the response
	Alone  bool   // it lives in one process
	File   bool   // its writes are one after the other, so cases are, too
	Link   bool   // it is reached through a network

	// Place returns the flags of the test server for a place of the store, which pairs may
	// share, and the address of its server in them, if it has one.
	Place func(testing.TB) (flags []string, addr string)

	// Effects returns how many effects of an operation were committed; nil without Atomic.
	Effects func(tb testing.TB, place []string, op string) int
}

// Stores are the rows of the matrix, without their places.
var Stores = []Store{
	{Name: "memory", Alone: true},
	{Name: "redis", Link: true},
	{Name: "postgres", Link: true},
	{Name: "postgres-tx", Link: true, Atomic: true},
	{Name: "mysql", Link: true},
	{Name: "mysql-tx", Link: true, Atomic: true},
	{Name: "sqlite", File: true},
	{Name: "sqlite-tx", File: true, Atomic: true},
	{Name: "etcd", Link: true},
}

func (s *Store) has(n need) bool {
	return (n&processes == 0 || !s.Alone) && (n&atomic == 0 || s.Atomic) && (n&link == 0 || s.Link) &&
		(n&streams == 0 || !s.Atomic)
}

// pair is an adapter over a store, in processes of the test server. The embedded test is
// that of a case.
type pair struct {
	*testing.T

	program string
	adapter string
	store   *Store
	place   []string // flags of the store
	addr    string   // of its server, in them

	a    *process // with the defaults; a duplicate is answered 409
	b    *process // duplicates wait, and responses of up to 1000 bytes are kept
	once *process // at most once
	soon *process // with a short lease; it forgets responses, and remembers keys
}

// retention is that of the process that forgets soon.
const retention = 2 * time.Second

// atOnce is how many pairs run at the same time. They wait for leases most of it.
const atOnce = 12

// RunAll runs the smoke cases on each adapter over stores. Each pair is a subtest,
// adapter/store. The function build is called once for an adapter, and returns its test
// server, or what the module proxy does not serve of it.
func RunAll(t *testing.T, stores []Store, build func(adapter string) (program, refused string)) {
	t.Helper()
	room := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for _, adapter := range Adapters {
		program := sync.OnceValues(func() (string, string) { return build(adapter) })
		for i := range stores {
			all.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				t.Run(adapter+"/"+stores[i].Name, func(t *testing.T) {
					file, refused := program()
					switch {
					case refused == "":
					case adapter == "nethttp", servers.Required(t, adapter):
						t.Fatal(refused)
					default:
						t.Skip("the module proxy does not serve what this adapter needs: " + refused)
					}
					run(t, file, adapter, &stores[i])
				})
			})
		}
	}
	all.Wait()
}

// run runs the smoke cases on an adapter over a store, through processes of a test
// server. The names are those of its flags.
func run(t *testing.T, program, adapter string, store *Store) {
	t.Helper()
	place, addr := store.Place(t)
	p := &pair{T: t, program: program, adapter: adapter, store: store, place: place, addr: addr}
	kinds := map[**process][]string{
		&p.a: nil, &p.b: {"-wait", "50s", "-max-response", "1000"}, &p.once: {"-preset", "at-most-once", "-lease", shortLease.String()},
		&p.soon: {"-retention", retention.String(), "-horizon", "1h", "-lease", shortLease.String()},
	}
	if store.Alone {
		delete(kinds, &p.a)
	}
	for at, flags := range kinds {
		*at = p.start(append(flags, "-store-timeout", patience.String())...)
	}
	if store.Alone {
		p.a = p.b
	}
	var running sync.WaitGroup
	for i := range cases {
		if c := &cases[i]; store.has(c.needs) && !c.last {
			running.Go(func() { p.try(t, c) }) // they wait most of the time
			if store.File {
				running.Wait()
			}
		}
	}
	running.Wait()
	for i := range cases {
		if c := &cases[i]; store.has(c.needs) && c.last {
			p.try(t, c)
		}
	}
}

func (p *pair) try(t *testing.T, c *smokeCase) {
	t.Helper()
	t.Run(c.ID, func(t *testing.T) {
		of := *p
		of.T = t
		c.run(&of)
	})
}

// start starts another process over the store, which ends with the case.
func (p *pair) start(flags ...string) *process { return p.startAt(p.place, flags) }

func (p *pair) startAt(place, flags []string) *process {
	p.Helper()
	return start(p, p.program, slices.Concat([]string{"-adapter", p.adapter, "-store", p.store.Name}, place, flags)...)
}

// startBehindALink starts a process that reaches the store's server through a link, and
// returns functions that cut and mend it.
func (p *pair) startBehindALink(flags ...string) (behind *process, cut, heal func()) {
	p.Helper()
	proxy := servers.StartProxy(p, p.addr)
	place := slices.Clone(p.place)
	for i := range place {
		place[i] = strings.ReplaceAll(place[i], p.addr, proxy.Addr())
	}
	return p.startAt(place, flags), func() { proxy.Set(p, servers.Refuse) }, func() { proxy.Heal(p) }
}

// other returns a process that does not wait, and is another than at where it can be.
func (p *pair) other(at *process) *process {
	if p.store.Alone {
		return at
	}
	return p.a
}

// request returns one with a key of its own.
func (p *pair) request(key string, program adaptertest.Program) request {
	tenant := p.adapter + "-" + strings.ReplaceAll(p.store.Name, "+", "-")
	return request{key: tenant + "-" + key, tenant: tenant, program: program} // places are shared
}

// wants wants the response of a handler or its replay.
func (p *pair) wants(a answer, status int, replayed bool) answer {
	p.Helper()
	if a.status != status || a.replayed != replayed {
		p.Fatalf("answered %d, replayed %t, want %d, %t: %v\n%.300s", a.status, a.replayed, status, replayed, a.header, a.body)
	}
	return a
}

// refused wants a problem of the middleware.
func (p *pair) refused(a answer, status int, code string) {
	p.Helper()
	if a.status != status || a.code != code {
		p.Fatalf("answered %d %s, want %d %s: %v\n%.300s", a.status, a.code, status, code, a.header, a.body)
	}
}

// takesOver sends a request until its handler runs as the attempt of that number, which
// the response echoes.
func (p *pair) takesOver(at *process, r request, attempt int) answer {
	p.Helper()
	var last answer
	eventually(p, "another attempt", func() bool {
		last = at.post(p.Context(), r)
		return last.status == 200
	})
	var echo adaptertest.Echo
	if err := json.Unmarshal([]byte(last.body), &echo); err != nil {
		p.Fatalf("%q: %v", last.body, err)
	}
	if echo.Attempt != attempt || last.replayed {
		p.Errorf("attempt %d, replayed %t, want attempt %d", echo.Attempt, last.replayed, attempt)
	}
	return last
}

// ran wants a number of runs in all of the processes that live as long as the pair.
func (p *pair) ran(r request, want int) {
	p.Helper()
	runs := 0
	seen := map[*process]bool{}
	for _, at := range []*process{p.a, p.b, p.once, p.soon} {
		if !seen[at] {
			runs += at.runs(p, r.key)
		}
		seen[at] = true
	}
	if runs != want {
		p.Errorf("%d runs, want %d", runs, want)
	}
}

// effects wants a number of committed effects.
func (p *pair) effects(r request, want int) {
	p.Helper()
	if got := p.store.Effects(p, p.place, r.key); got != want {
		p.Errorf("%d effects, want %d", got, want)
	}
}
