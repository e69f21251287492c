// Package matrix is the grid of every store × every adapter, and its sheet,
// docs/engineering/conformance.md. The module of each framework runs its own column.
package matrix

import (
	"flag"
	"os"
	"path"
	"slices"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/sqlitefile"
	"github.com/reprise-go/reprise/lab/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

var updateDocs = flag.Bool("update-docs", false, "write docs/engineering/conformance.md instead of comparing it")

// matrixStore is a row of the matrix: a store that every adapter is served over.
type matrixStore struct {
	name    string
	atomic  bool
	waivers []conformance.Waiver // of every adapter over it

	// connect is called once for each combination, and returns the function that gives each
	// case its handles. Cases share a backing store; two handles of one case are two
	// processes over it.
	connect func(testing.TB) func() func(testing.TB) store.Store
}

var matrixStores = []matrixStore{
	{
		name: "memory",
		connect: func(testing.TB) func() func(testing.TB) store.Store {
			return func() func(testing.TB) store.Store { // of each case, since it lives in one process
				st := sync.OnceValue(memstore.New)
				return func(testing.TB) store.Store { return st() }
			}
		},
	},
	{
		name: "redis",
		connect: func(tb testing.TB) func() func(testing.TB) store.Store {
			server, config := servers.Redis.Shared(tb), repriseredis.Config{Prefix: labtest.RedisPrefix()}
			return always(func(tb testing.TB) store.Store {
				return labtest.RedisStore(tb, labtest.RedisClient(tb, server.Addr()), config)
			})
		},
	},
	{
		name: "postgres",
		connect: func(tb testing.TB) func() func(testing.TB) store.Store {
			f := labtest.SetupPostgres(tb, servers.SharedPostgres(tb))
			return always(func(tb testing.TB) store.Store { return f.Leased(tb) })
		},
	},
	{
		name: "postgres-tx", atomic: true,
		connect: func(tb testing.TB) func() func(testing.TB) store.Store {
			f := labtest.SetupPostgres(tb, servers.SharedPostgres(tb), labtest.MaxConns(24))
			return always(func(tb testing.TB) store.Store { return f.Transactional(tb) })
		},
		waivers: []conformance.Waiver{{
			Case:   "R22c",
			Reason: "the fingerprint of an attempt in another process is not visible before its transaction commits: 409 instead of 422 until then",
		}},
	},
	{
		name: "sqlite",
		connect: func(tb testing.TB) func() func(testing.TB) store.Store {
			file := sqlitefile.New(tb)
			return always(func(tb testing.TB) store.Store { return sqlitefile.Leased(tb, file) })
		},
	},
	{
		name: "sqlite-tx", atomic: true,
		connect: func(testing.TB) func() func(testing.TB) store.Store {
			// A file of each case, because it has one writer, and one handle, because the attempts
			// of another process are invisible: see docs/sqlite.md.
			return func() func(testing.TB) store.Store {
				var (
					once sync.Once
					st   store.Store
				)
				return func(tb testing.TB) store.Store {
					once.Do(func() { st = sqlitefile.Transactional(tb, sqlitefile.New(tb)) })
					return st
				}
			}
		},
		waivers: []conformance.Waiver{
			{Case: "R21", Reason: oneWriter},
			{Case: "R43b", Reason: oneWriter},
		},
	},
}

const oneWriter = "a file has one writer, so one attempt runs at a time: another operation waits for it, and is answered 503 when it has waited for its claim budget"

// always returns the same for every case.
func always[T any](v T) func() T { return func() T { return v } }

// NetHTTPWaivers are those of every adapter whose server is that of net/http.
var NetHTTPWaivers = []conformance.Waiver{
	{Case: "R27h", Reason: "net/http drops the length before any handler, as RFC 9112 permits, and keeps the connection: a proxy in front must refuse such requests"},
	{Case: "R27i", Reason: "net/http joins folded lines before any handler, as RFC 9112 permits: no adapter can see that they were folded"},
}

// Adapters are the columns of the matrix. The folder below lab of each has a test that
// runs [Run].
var Adapters = []string{"nethttp", "gin", "echo", "echo5", "fiber", "fiber3"}

// The page is written by one column after the other.
//go:generate go test -p 1 -count=1 -run ^TestMatrix$DOLLAR ../nethttp ../gin ../echo ../echo5 ../fiber -update-docs
//go:generate env GOWORK=off go test -C ../fiber3 -count=1 -run ^TestMatrix$DOLLAR . -update-docs

// Run runs every case for adapters on an adapter over every store, and compares its
// column of docs/engineering/conformance.md with the results. The name is one of
// [Adapters]; the waivers hold over every store.
func Run(t *testing.T, adapter string, build func(*testapp.App) testapp.Server, waivers ...conformance.Waiver) {
	t.Helper()
	t.Parallel()
	if !slices.Contains(Adapters, adapter) {
		t.Fatalf("the matrix has no column %q", adapter)
	}
	results := newSheet()
	if *updateDocs || os.Getenv("REPRISE_NEWEST") == "" { // the page is that of the oldest releases
		t.Cleanup(func() { results.finish(t, *updateDocs) })
	}
	for _, store := range matrixStores {
		t.Run("store="+store.name+"/adapter="+adapter, func(t *testing.T) {
			t.Parallel()
			perCase := store.connect(t)
			adaptertest.Run(t, func(tb testing.TB) adaptertest.Fixture {
				if !shown(adapter, store, path.Base(tb.Name())) {
					labtest.Breadth(tb, "cases of adapters over a further store")
				}
				return adaptertest.Fixture{
					Open: perCase(), Serve: testapp.InTest(build), Advance: conformance.Sleep, Atomic: store.atomic,
					Waivers: slices.Concat(waivers, store.waivers), Report: results.report(adapter, store.name),
				}
			})
		})
	}
}

// shown reports whether a case runs with -short, which runs each on every adapter and on
// every store: on net/http over every store, and on the others over memory, or over an
// atomic store if it needs one.
func shown(adapter string, st matrixStore, id string) bool {
	needs := func(c conformance.Case) bool { return c.ID == id && slices.Contains(c.Needs, conformance.AtomicClaims) }
	return adapter == Adapters[0] || st.name == "memory" || st.atomic && slices.ContainsFunc(adaptertest.Cases(), needs)
}
