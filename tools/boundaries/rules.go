package main

import "strings"

// root is the path that every module of the project starts with.
const root = "github.com/reprise-go/reprise/"

// outside are the folders whose modules are in no workspace: nobody inherits their
// requirements there. Prometheus, in lab/otel, and gocloud.dev, in blob, would raise what
// the other modules are tested on: the oldest releases that they ask for.
var outside = []string{"tools", "blob", "lab/blob", "lab/openapi", "lab/otel"}

// A room is a folder of the tree with what its packages may import besides the standard
// library. A package belongs to the room with the longest folder that contains it; one
// that belongs to no room is a violation, so that a new folder gets a row here before it
// gets imports.
//
// Patterns are import paths, relative to the project's root unless they start with a host
// name. "x/..." is x and everything below it; "!" takes back what an earlier pattern
// allowed; the last pattern that matches decides.
type room struct {
	folder string

	// imports lists what code that is not a test may import.
	imports []string

	// tests lists what the room's tests may import in addition.
	tests []string

	// never lists what code that is not a test may not import, not even through other
	// packages.
	never []string

	// free rooms may import anything; they are not published.
	free bool
}

// The parts of the table that several rooms share.
var (
	coreForStores   = []string{"core/...", "!core/protocol/...", "!core/memstore/..."}
	coreForAdapters = []string{"core/...", "!core/memstore/..."}
	allOfCore       = []string{"core/..."}
	noTests         = []string{"testing"}
	noHTTPNoTests   = []string{"net/http", "testing"}
)

// rooms is the table of docs/engineering/adr/0001-modules-and-tooling.md. It says in one
// place that core needs the standard library only, that no adapter imports a store and no
// store an adapter, and that the suites need nothing but core.
var rooms = []room{
	{folder: "core", imports: coreForStores, tests: allOfCore, never: noHTTPNoTests},
	{folder: "core/protocol", imports: with(coreForAdapters, "github.com/dunglas/httpsfv"), tests: allOfCore, never: noHTTPNoTests},
	{folder: "core/memstore", imports: with(coreForStores, "core/memstore/..."), tests: allOfCore, never: noHTTPNoTests},

	{folder: "store/internal", imports: []string{"store/internal/..."}, never: noTests},
	{folder: "store/redis", imports: with(coreForStores, "store/redis/...", "store/internal/...", "github.com/redis/go-redis/v9/..."), tests: allOfCore, never: noTests},
	{folder: "store/postgres", imports: with(coreForStores, "store/postgres/...", "store/internal/...", "github.com/jackc/pgx/v5/..."), tests: allOfCore, never: noTests},

	{folder: "adapters/internal", imports: with(coreForAdapters, "adapters/internal/..."), tests: allOfCore, never: noTests},
	{folder: "adapters/internal/harness", imports: allOfCore, tests: allOfCore}, // for tests alone
	{folder: "adapters/nethttp", imports: with(coreForAdapters, "adapters/nethttp/...", "adapters/internal/..."), tests: allOfCore, never: noTests},
	{folder: "adapters/gin", imports: with(coreForAdapters, "adapters/gin/...", "adapters/internal/...", "github.com/gin-gonic/gin/..."), tests: allOfCore, never: noTests},
	{folder: "adapters/echo", imports: with(coreForAdapters, "adapters/echo/...", "adapters/internal/...", "github.com/labstack/echo/v4/..."), tests: allOfCore, never: noTests},
	{
		folder:  "adapters/fiber",
		imports: with(coreForAdapters, "adapters/fiber/...", "github.com/gofiber/fiber/v2/...", "github.com/valyala/fasthttp/..."),
		tests:   allOfCore, // Fiber's own utils need testing
	},
	{folder: "adapters/echo5", imports: with(coreForAdapters, "adapters/echo5/...", "adapters/internal/...", "github.com/labstack/echo/v5/..."), tests: allOfCore, never: noTests},
	{
		folder:  "adapters/grpc",
		imports: with(coreForAdapters, "adapters/grpc/...", "google.golang.org/grpc/...", "google.golang.org/protobuf/...", "google.golang.org/genproto/googleapis/rpc/..."),
		tests:   allOfCore, never: noTests,
	},
	{
		folder:  "adapters/connect",
		imports: with(coreForAdapters, "adapters/connect/...", "connectrpc.com/connect/...", "google.golang.org/protobuf/...", "google.golang.org/genproto/googleapis/rpc/..."),
		tests:   allOfCore, never: noTests,
	},

	{folder: "blob", imports: with(coreForAdapters, "blob/...", "gocloud.dev/blob/...", "gocloud.dev/gcerrors"), tests: allOfCore, never: noTests},
	{folder: "client", imports: []string{"client/...", "github.com/cenkalti/backoff/v5/..."}, never: noTests},
	{folder: "reprisetest", imports: with(allOfCore, "reprisetest/...", "conformance/faultstore"), tests: allOfCore},

	{
		folder:  "conformance",
		imports: with(coreForAdapters, "conformance/..."),
		tests:   allOfCore,
	},

	{folder: "otel", imports: with(coreForStores, "otel/...", "client/...", "go.opentelemetry.io/otel/..."), tests: allOfCore, never: noTests},
	{folder: "console", imports: with(coreForAdapters, "console/..."), tests: allOfCore, never: noTests},
	{
		folder: "cmd",
		imports: with(coreForAdapters, "cmd/...", "console/...", "store/...", "github.com/jackc/pgx/v5/...", "github.com/redis/go-redis/v9/...",
			"github.com/rivo/uniseg", "github.com/spf13/cobra/...", "github.com/spf13/pflag/...", "golang.org/x/term/..."),
		tests: allOfCore,
		never: noTests,
	},

	{folder: "lab", free: true},
	{folder: "examples", free: true},
}

// exclusive lists the frameworks and database clients. A published module whose room does
// not name one must not have it anywhere in its module graph: who takes one adapter gets
// no other framework.
var exclusive = []string{
	"connectrpc.com/connect",
	"github.com/gin-gonic/gin",
	"github.com/gofiber/fiber/v2",
	"github.com/jackc/pgx/v5",
	"github.com/labstack/echo/v4",
	"github.com/labstack/echo/v5",
	"github.com/redis/go-redis/v9",
	"github.com/valyala/fasthttp",
}

// frameworkRooms lists where else than in its adapter a framework may be imported.
// Everything there stands under the framework's build tag, or is a package of its own
// that can be left out.
var frameworkRooms = []string{
	"examples/...",
	"lab/blob",
	"lab/connect",
	"lab/frameworks/...",
	"lab/matrix",
	"lab/otel",
	"lab/rpc",
	"lab/serve/serveecho",
	"lab/serve/serveecho5",
	"lab/serve/servefiber",
	"lab/serve/servegin",
}

// goVersions are the language versions that a go.mod may ask for; the second only where a
// dependency needs it.
var goVersions = []string{"1.25.0", "1.26.0"}

// roomOf returns the room of a package or module of the project, by its path below the
// root.
func roomOf(path string) (room, bool) {
	var found room
	ok := false
	for _, r := range rooms {
		if within(path, r.folder) && (!ok || len(r.folder) > len(found.folder)) {
			found, ok = r, true
		}
	}
	return found, ok
}

// allows reports whether the patterns admit an import path.
func allows(patterns []string, path string) bool {
	allowed := false
	for _, p := range patterns {
		p, taken := strings.CutPrefix(p, "!")
		if matches(p, path) {
			allowed = !taken
		}
	}
	return allowed
}

func matches(pattern, path string) bool {
	if isStandard(pattern) { // no host name: one of ours
		pattern = root + pattern
	}
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return within(path, tree)
	}
	return path == pattern
}

// isStandard reports whether an import path belongs to the standard library, by the go
// command's own rule: its first element has no dot.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// within reports whether path is tree or below it.
func within(path, tree string) bool {
	return path == tree || strings.HasPrefix(path, tree+"/")
}

func with(patterns []string, more ...string) []string {
	return append(append([]string(nil), patterns...), more...)
}
