package matrix

import (
	"flag"
	"slices"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/serve"
	"github.com/reprise-go/reprise/lab/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

var (
	updateDocs = flag.Bool("update-docs", false, "write docs/engineering/conformance.md instead of comparing it")

	// The sheet is of the oldest releases that the adapters require. Newer ones may not need
	// a waiver any more.
	compareDocs = flag.Bool("compare-docs", true, "compare docs/engineering/conformance.md with what came out")
)

// matrixStore is a row of the matrix: a store that every adapter is served over.
type matrixStore struct {
	name    string
	atomic  bool
	waivers []conformance.Waiver // of every adapter over it

	// connect is called once for each combination, and returns what each case gets its
	// handles from. Cases share a backing store; two handles of one case are two processes
	// over it.
	connect func(testing.TB) func() func(testing.TB) store.Store
}

// matrixAdapter is a column of the matrix.
type matrixAdapter struct {
	name    string
	waivers []conformance.Waiver // over every store
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
}

// always returns the same for every case.
func always[T any](v T) func() T { return func() T { return v } }

// matrixAdapters has every adapter that package serve knows, whether this binary has it
// or not. netHTTPWaivers are those of every adapter whose server is that of net/http.
var netHTTPWaivers = []conformance.Waiver{
	{Case: "R27h", Reason: "net/http drops the length before any handler, as RFC 9112 permits, and keeps the connection: a proxy in front must refuse such requests"},
	{Case: "R27i", Reason: "net/http joins folded lines before any handler, as RFC 9112 permits: no adapter can see that they were folded"},
}

var matrixAdapters = []matrixAdapter{
	{name: "nethttp", waivers: netHTTPWaivers},
	{name: "gin", waivers: netHTTPWaivers},
	{name: "echo", waivers: netHTTPWaivers},
	{name: "echo5", waivers: netHTTPWaivers},
	{name: "fiber", waivers: []conformance.Waiver{
		{Case: "R1e", Reason: "fasthttp reads the whole body before any handler, with a key or without"},
		{Case: "R17a", Reason: "fasthttp sends no informational answers"},
		{Case: "R26c", Reason: "fasthttp refuses or reads the body by itself before any handler: a declared length over its own limit is its plain 413"},
		{Case: "R27e", Reason: "fasthttp before 1.70 takes a chunked body as whole once its last chunk came; the handler gets all of it"},
		{Case: "R28a", Reason: "fasthttp asks the client to continue before any handler, so the refusal comes after the body"},
	}},
}

//go:generate go test -count=1 -run ^TestMatrix$DOLLAR . -update-docs

// TestMatrix runs every case for adapters on every adapter over every store, and compares
// docs/engineering/conformance.md with what came out.
func TestMatrix(t *testing.T) {
	t.Parallel()
	results := newSheet()
	if *compareDocs || *updateDocs {
		t.Cleanup(func() { results.finish(t, *updateDocs) })
	}
	for _, store := range matrixStores {
		t.Run("store="+store.name, func(t *testing.T) {
			t.Parallel()
			for _, adapter := range matrixAdapters {
				t.Run("adapter="+adapter.name, func(t *testing.T) {
					t.Parallel()
					built(t, adapter.name)
					perCase := store.connect(t)
					adaptertest.Run(t, func(testing.TB) adaptertest.Fixture {
						return adaptertest.Fixture{
							Open: perCase(), Serve: serve.Adapter(adapter.name), Advance: conformance.Sleep, Atomic: store.atomic,
							Waivers: slices.Concat(adapter.waivers, store.waivers), Report: results.report(adapter.name, store.name),
						}
					})
				})
			}
		})
	}
}

// built skips the test of an adapter that this binary was built without, or fails it if
// REPRISE_TEST_REQUIRE names the adapter. The page keeps what it says of it.
func built(t *testing.T, adapter string) {
	t.Helper()
	if !slices.Contains(serve.LeftOut(), adapter) {
		return
	}
	const text = "the build tag without_%s left %[1]s out: its cells in docs/engineering/conformance.md are not checked"
	if servers.Required(t, adapter) {
		t.Fatalf(text, adapter)
	}
	t.Skipf(text, adapter)
}

func TestEveryAdapterIsAColumn(t *testing.T) {
	t.Parallel()
	want := slices.Sorted(slices.Values(slices.Concat(serve.Adapters(), serve.LeftOut())))
	if columns := slices.Sorted(slices.Values(names(matrixAdapters))); !slices.Equal(columns, want) {
		t.Errorf("the columns are %v, want the adapters of package serve, %v", columns, want)
	}
	for _, name := range serve.LeftOut() {
		servers.Required(t, name) // which fails for a name that it does not know
	}
}
