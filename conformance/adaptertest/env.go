package adaptertest

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/internal/suite"
)

// env is the environment of a case for adapters: the test that it reports to, and a
// tenant and a key that no other case uses.
type env struct {
	testing.TB

	fixture Fixture
	tenant  string
	key     string
}

func newEnv(tb testing.TB, f Fixture) *env {
	tb.Helper()
	if f.Patience == 0 {
		f.Patience = defaultPatience
	}
	id := suite.NewID()
	return &env{TB: tb, fixture: f, tenant: "tenant-" + id.Short(), key: "key-" + id.String()[:32]}
}

// opName is the operation that cases run unless they name another.
const opName = "op"

// post returns a keyed request that makes the handler do p.
func (e *env) post(p Program) call {
	return call{method: "POST", target: "/t/" + opName, tenant: e.tenant, keys: []string{e.key}, body: `{"amount":1}`}.does(p)
}

// freshKey returns c with a key that no other call has.
func (c call) freshKey() call {
	id := suite.NewID()
	return c.withKeys("key-" + id.String()[:32])
}

// eventually polls until done reports true.
func (e *env) eventually(what string, done func() bool) {
	e.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(e.fixture.Patience); !done(); <-tick.C {
		if time.Now().After(deadline) {
			e.Fatalf("not within %v: %s", e.fixture.Patience, what)
		}
	}
}
