// Package adaptertest is the suite for adapters: the rules of the protocol, as a client
// observes them.
//
// An adapter serves the handlers of the package
// [github.com/reprise-go/reprise/conformance/adaptertest/testapp] natively, and runs
// [Run] over each store. The cases write their requests to a real listener as they are,
// and read the responses more strictly than a client must. Cases are named after the
// rules in docs/engineering/protocol.md.
package adaptertest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/internal/suite"
	"github.com/reprise-go/reprise/core/store"
)

// Fixture is an adapter under test over a store. Every case has a new fixture, tenant and
// key; cases run in parallel, so fixtures may share one backing store. A fixture
// registers its cleanup with the [testing.TB] it is given.
type Fixture struct {
	// Open returns a handle on the store with its own connections. Two handles of one
	// fixture stand for two processes over the same records. For a store that lives in
	// one process, Open returns the same store again.
	Open func(testing.TB) store.Store

	// Serve starts a native server of the framework on a free port of the loopback
	// interface, and returns its address. The handlers are those of the test server: /t/{op}
	// behind the adapter's middleware runs the request's [Program], /u/… is behind the
	// middleware with no route below it, and GET /executions/{op} reports how often the
	// operation ran. A Cleanup stops the server and its engine.
	Serve func(testing.TB, Options) (addr string)

	// Patience is how long the cases wait for something that must happen. Zero is 10 s; with
	// less, a case whose store hangs for its 3 s may fail.
	Patience time.Duration

	// Waivers declare the cases that the adapter is known to fail over this store.
	Waivers []conformance.Waiver
}

const (
	defaultPatience = 10 * time.Second
	silentPatience  = time.Second // of a case whose waiver is silent
)

// Cases returns every case, in the order in which they run.
func Cases() []conformance.Case {
	all := make([]conformance.Case, len(cases))
	for i, c := range cases {
		all[i] = suite.Clone(c.Case)
	}
	return all
}

// Run runs every case for adapters as a parallel subtest of t, named by the ID of the
// case, or those cases only whose IDs are given. newFixture is called once for each.
func Run(t *testing.T, newFixture func(testing.TB) Fixture, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if !slices.ContainsFunc(cases, func(c testCase) bool { return c.ID == id }) {
			t.Fatalf("there is no case %s for adapters", id)
		}
	}
	for _, c := range cases {
		if len(ids) > 0 && !slices.Contains(ids, c.ID) {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if err := f.check(); err != nil {
				t.Fatal(err)
			}
			c.judge(t, f)
		})
	}
}

// check reports an invalid fixture.
func (f *Fixture) check() error {
	if f.Open == nil || f.Serve == nil {
		return errors.New("adaptertest: Fixture needs Open and Serve")
	}
	return suite.CheckWaivers(f.Waivers, Cases())
}

// testCase is a case for adapters and how it is tested.
type testCase struct {
	conformance.Case

	test func(*env)
}

// judge runs the case and reports its result to tb, inverted if the case is waived.
func (c *testCase) judge(tb testing.TB, f Fixture) {
	tb.Helper()
	if w, _ := suite.WaiverOf(f.Waivers, c.Case); w.Silent {
		f.Patience = silentPatience
	}
	suite.Judge(tb, c.Case, f.Waivers, func(tb testing.TB) { c.test(newEnv(tb, f)) })
}
