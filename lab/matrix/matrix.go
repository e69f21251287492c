// Package matrix is the grid of every store × every adapter, and its sheet,
// docs/engineering/conformance.md. The module of each framework runs its own column.
package matrix

import (
	"flag"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/lab/serve/sqlitefile"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

var updateDocs = flag.Bool("update-docs", false, "write docs/engineering/conformance.md instead of comparing it")

// Store is a row of the matrix: a store that every adapter is served over.
type Store struct {
	Name    string
	Atomic  bool
	Waivers []conformance.Waiver // of every adapter over it

	// Connect is called once for each combination, and returns the function that gives each
	// case its handles. Cases share a backing store; two handles of one case are two
	// processes over it.
	Connect func(testing.TB) func() func(testing.TB) store.Store

	// Grain, Patience and Advance are those of an [adaptertest.Fixture].
	Grain, Patience time.Duration
	Advance         func(testing.TB, time.Duration) // nil: [conformance.Sleep]

	Blobs func(testing.TB) protocol.BlobStore // of a combination, for response bodies; nil: they are in the records
}

// elsewhere are the stores whose clients the module lab does not require. The tests of
// lab/etcd/testserver run every adapter over them.
var elsewhere = []string{"etcd", "etcd+redis"}

var rows = []Store{
	{
		Name: "memory",
		Connect: func(testing.TB) func() func(testing.TB) store.Store {
			return func() func(testing.TB) store.Store { // of each case, since it lives in one process
				st := sync.OnceValue(memstore.New)
				return func(testing.TB) store.Store { return st() }
			}
		},
	},
	{
		Name: "redis",
		Connect: func(tb testing.TB) func() func(testing.TB) store.Store {
			server, config := servers.Redis.Shared(tb), repriseredis.Config{Prefix: labtest.RedisPrefix()}
			return always(func(tb testing.TB) store.Store {
				return labtest.RedisStore(tb, labtest.RedisClient(tb, server.Addr()), config)
			})
		},
	},
	{
		Name: "postgres",
		Connect: func(tb testing.TB) func() func(testing.TB) store.Store {
			f := labtest.SetupPostgres(tb, servers.SharedPostgres(tb))
			return always(func(tb testing.TB) store.Store { return f.Leased(tb) })
		},
	},
	{
		Name: "postgres-tx", Atomic: true,
		Connect: func(tb testing.TB) func() func(testing.TB) store.Store {
			f := labtest.SetupPostgres(tb, servers.SharedPostgres(tb), labtest.MaxConns(24))
			return always(func(tb testing.TB) store.Store { return f.Transactional(tb) })
		},
		Waivers: []conformance.Waiver{{Case: "R22c", Reason: invisible, Says: "answered 409"}},
	},
	{
		Name: "mysql",
		Connect: func(tb testing.TB) func() func(testing.TB) store.Store {
			raw := mysqlserver.New(tb, servers.SharedMariaDB(tb))
			return always(func(tb testing.TB) store.Store { return mysqlserver.Leased(tb, raw) })
		},
	},
	{
		Name: "mysql-tx", Atomic: true,
		Connect: func(tb testing.TB) func() func(testing.TB) store.Store {
			raw := mysqlserver.New(tb, servers.SharedMariaDB(tb))
			return always(func(tb testing.TB) store.Store { return mysqlserver.Transactional(tb, raw) })
		},
		Waivers: []conformance.Waiver{{Case: "R22c", Reason: invisible, Says: "answered 409"}},
	},
	{
		Name: "sqlite",
		Connect: func(tb testing.TB) func() func(testing.TB) store.Store {
			file := sqlitefile.New(tb)
			return always(func(tb testing.TB) store.Store { return sqlitefile.Leased(tb, file) })
		},
	},
	{
		Name: "sqlite-tx", Atomic: true,
		Connect: func(testing.TB) func() func(testing.TB) store.Store {
			// A file of each case, because it has one writer, and one handle, because the attempts
			// of another process are invisible: see docs/operate/sqlite.md.
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
		Waivers: []conformance.Waiver{
			{Case: "R21", Reason: oneWriter, Says: "the handler did not run: 503"},
		},
	},
}

const oneWriter = "a file has one writer, so one attempt runs at a time: another operation waits for it, and is answered 503 when it has waited for its claim budget"

const invisible = "the fingerprint of an attempt in another process is not visible before its transaction commits: 409 instead of 422 until then"

// always returns the same for every case.
func always[T any](v T) func() T { return func() T { return v } }

// NetHTTPWaivers are those of every adapter whose server is that of net/http.
var NetHTTPWaivers = []conformance.Waiver{
	{Case: "R27h", Says: "there is another answer", Reason: "net/http drops the length before any handler, as RFC 9112 permits, and keeps the connection: a proxy in front must refuse such requests"},
	{Case: "R27i", Says: "answered 201", Reason: "net/http joins folded lines before any handler, as RFC 9112 permits: no adapter can see that they were folded"},
}

// Adapters are the columns of the matrix. The folder below lab of each has a test that
// runs [Run].
var Adapters = []string{"nethttp", "gin", "echo", "echo5", "fiber", "fiber3"}

// smoke are the cases that every adapter has to pass over every store: what a client
// observes of each thing that a store does. All other cases are about the protocol and
// the adapter, and run over memory. Those that need atomic claims run over each store
// that has them.
var smoke = []string{
	"R11a", "R12a", "R12d", "R20c", "R20d", "R20e", "R21", "R22b", "R22c", "R23a", "R31b", "R31c", "R33b", "R34b", "R35a", "R37a", "R37e", "R37g",
	"R38a", "R38b", "R38c", "R39", "R40a", "R40d", "R41b", "R41d", "R41f", "R43a", "R52a", "R52b",
}

// casesOver are the cases that run over a store; none for all.
func casesOver(st *Store) []string {
	if st.Name == "memory" {
		return nil
	}
	ids := slices.Clone(smoke)
	for _, c := range adaptertest.Cases() {
		if slices.Contains(c.Needs, conformance.AtomicClaims) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// The page is written by one column after the other.
//go:generate go test -p 1 -count=1 -run ^TestMatrix$DOLLAR ../nethttp ../gin ../echo ../echo5 ../fiber -update-docs
//go:generate env GOWORK=off go test -C ../fiber3 -count=1 -run ^TestMatrix$DOLLAR . -update-docs
//go:generate env GOWORK=off go test -C ../etcd/testserver -count=1 -timeout 20m -run ^TestMatrix$DOLLAR . -update-docs

// Run runs every case for adapters on an adapter over memory, and the smoke cases over
// every other store of the module lab, as [RunOver] does.
func Run(t *testing.T, adapter string, build func(*testapp.App) testapp.Server, waivers ...conformance.Waiver) {
	t.Helper()
	t.Parallel()
	RunOver(t, rows, adapter, build, waivers...)
}

// RunOver runs the cases for adapters on an adapter over stores, and compares its column
// of docs/engineering/conformance.md with the results. The name is one of [Adapters]; the
// waivers hold over every store.
func RunOver(t *testing.T, stores []Store, adapter string, build func(*testapp.App) testapp.Server, waivers ...conformance.Waiver) {
	t.Helper()
	if !slices.Contains(Adapters, adapter) {
		t.Fatalf("the matrix has no column %q", adapter)
	}
	results := newSheet()
	if *updateDocs || os.Getenv("REPRISE_NEWEST") == "" { // the page is that of the oldest releases
		t.Cleanup(func() { results.finish(t, *updateDocs) })
	}
	for _, store := range stores {
		t.Run("store="+store.Name+"/adapter="+adapter, func(t *testing.T) {
			t.Parallel()
			perCase, serve := store.Connect(t), testapp.InTest(build)
			if store.Blobs != nil {
				serve = offloading(store.Blobs(t), serve)
			}
			advance := store.Advance
			if advance == nil {
				advance = conformance.Sleep
			}
			adaptertest.Run(t, func(testing.TB) adaptertest.Fixture {
				return adaptertest.Fixture{
					Open: perCase(), Serve: serve, Advance: advance, Grain: store.Grain, Patience: store.Patience, Atomic: store.Atomic,
					Waivers: slices.Concat(waivers, store.Waivers), Report: results.report(adapter, store.Name),
				}
			}, casesOver(&store)...)
		})
	}
}

// offloading returns serve with response bodies of more than 64 bytes in blobs. A case
// that limits bodies itself, or has blobs, stays as it is.
func offloading(blobs protocol.BlobStore, serve func(testing.TB, adaptertest.Options) string) func(testing.TB, adaptertest.Options) string {
	return func(tb testing.TB, o adaptertest.Options) string {
		tb.Helper()
		if o.Guard.Limits.ResponseBody == 0 && o.Guard.Offload.Blobs == nil {
			o.Guard.Limits.ResponseBody, o.Guard.Offload.Blobs = 64, blobs
		}
		return serve(tb, o)
	}
}
