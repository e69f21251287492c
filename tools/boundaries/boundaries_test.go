// Package boundaries tests the rules about modules that depguard does not see: what each
// go.mod requires, on which releases the tests run, and what published packages link
// through others. Which package of a module may import which is in .golangci.yml.
package boundaries

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the path that every module of the project starts with.
const root = "github.com/reprise-go/reprise/"

// requires are the modules that code and tests of each published module may import; those
// of the project by their folders. Any other module that is published needs a row.
var requires = map[string]string{
	"core":                       "github.com/dunglas/httpsfv",
	"servers":                    "",
	"store/internal":             "core",
	"store/etcd":                 "core store/internal go.etcd.io/etcd/api/v3 go.etcd.io/etcd/client/v3 google.golang.org/grpc",
	"store/mysql":                "core store/internal",
	"store/postgres":             "core store/internal github.com/jackc/pgx/v5",
	"store/redis":                "core store/internal github.com/redis/go-redis/v9",
	"store/sqlite":               "core store/internal",
	"adapters/internal":          "core",
	"adapters/internal/fasthttp": "core github.com/valyala/fasthttp",
	"adapters/nethttp":           "core adapters/internal",
	"adapters/gin":               "core adapters/internal github.com/gin-gonic/gin",
	"adapters/echo":              "core adapters/internal github.com/labstack/echo/v4",
	"adapters/echo5":             "core adapters/internal github.com/labstack/echo/v5",
	"adapters/fiber":             "core adapters/internal/fasthttp github.com/gofiber/fiber/v2 github.com/valyala/fasthttp",
	"adapters/fiber3":            "core adapters/internal/fasthttp github.com/gofiber/fiber/v3 github.com/valyala/fasthttp",
	"adapters/grpc":              "core google.golang.org/grpc google.golang.org/protobuf",
	"adapters/connect":           "core connectrpc.com/connect google.golang.org/protobuf",
	"client":                     "github.com/cenkalti/backoff/v5",
	"client/grpc":                "client google.golang.org/grpc google.golang.org/protobuf",
	"client/connect":             "client connectrpc.com/connect google.golang.org/protobuf",
	"blob":                       "core gocloud.dev",
	"otel":                       "core client go.opentelemetry.io/otel go.opentelemetry.io/otel/metric go.opentelemetry.io/otel/trace",
	"conformance":                "core",
	"reprisetest":                "core conformance",
	"console":                    "core",
	"proxy":                      "core adapters/nethttp github.com/pelletier/go-toml/v2",
	"caddy":                      "core proxy store/postgres store/redis github.com/caddyserver/caddy/v2 github.com/jackc/pgx/v5 github.com/redis/go-redis/v9",
	"cmd/reprise": "core console otel proxy store/etcd store/mysql store/postgres store/redis store/sqlite go.etcd.io/etcd/client/v3 go.uber.org/zap github.com/go-sql-driver/mysql github.com/jackc/pgx/v5 " +
		"github.com/redis/go-redis/v9 modernc.org/sqlite github.com/prometheus/client_golang " +
		"github.com/rivo/uniseg github.com/spf13/cobra github.com/spf13/pflag go.opentelemetry.io/otel/exporters/prometheus go.opentelemetry.io/otel/sdk/metric golang.org/x/net golang.org/x/term",
}

// suites are modules for tests alone that need the standard library and core. Stores and
// adapters may require them, and depguard keeps them out of code that is not a test.
var suites = []string{"conformance", "servers"}

var (
	dir       = filepath.Join("..", "..")
	published = regexp.MustCompile(`^(adapters|blob|caddy|client|cmd|conformance|console|core|otel|proxy|reprisetest|servers|store)(/|$)`)
	private   = regexp.MustCompile(`^(examples|lab|tools)(/|$)`)
)

type module struct {
	Go, Toolchain string
	Require       []struct {
		Path, Version string
		Indirect      bool
	}
}

// modules returns the go.mod files of the project by their folders.
func modules(t *testing.T) map[string]module {
	t.Helper()
	found := map[string]module{}
	for file := range strings.FieldsSeq(run(t, "find * -name go.mod -not -path '*/node_modules/*'")) {
		found[path.Dir(file)] = decode[module](t, "go mod edit -json "+file)
	}
	return found
}

func decode[T any](t *testing.T, command string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(run(t, command)), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// served puts a command into the workspace of what the module proxy serves.
const served = `found=$(.ci/modules go.work); eval "$found"; `

// run returns the output of a shell's command in the folder of the project.
func run(t *testing.T, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", command)
	cmd.Dir, cmd.Stderr = dir, t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return string(out)
}

// A consumer of a module gets what its row has, the rows of these, and what clients and
// frameworks bring; nothing else that another row has.
func TestModulesRequireNothingElse(t *testing.T) {
	t.Parallel()
	for folder, m := range modules(t) {
		if m.Go != "1.25.0" && m.Go != "1.26.0" || m.Toolchain != "" {
			t.Errorf("%s: go %s, toolchain %q: want 1.25.0, or 1.26.0 where a dependency needs it, and no toolchain", folder, m.Go, m.Toolchain)
		}
		row, listed := requires[folder]
		if !listed && published.MatchString(folder) || !published.MatchString(folder) && !private.MatchString(folder) {
			t.Errorf("%s has no row in the table of what modules may require", folder)
		}
		for _, r := range m.Require {
			name := strings.TrimPrefix(r.Path, root)
			tested := slices.Contains(suites, name) && (strings.HasPrefix(folder, "store/") || strings.HasPrefix(folder, "adapters/"))
			may := strings.Fields(row)
			if r.Indirect { // of other projects, make tidy allows what these bring
				may = brings(folder)
			}
			if listed && !tested && (!r.Indirect || name != r.Path) && !slices.Contains(may, name) {
				t.Errorf("%s requires %s, which its row does not have", folder, name)
			}
		}
	}
}

// brings returns the modules of the row of a folder, and of their rows.
func brings(folder string) []string {
	list := strings.Fields(requires[folder])
	for _, name := range list {
		list = append(list, brings(name)...)
	}
	return list
}

// The tests run on the releases of frameworks and clients that the published modules
// require, the oldest. In the workspace, a newer requirement of any module would raise
// them: make isolated tests those of its RAISED without the workspace.
func TestTestsRunOnTheOldestReleases(t *testing.T) {
	t.Parallel()
	found := modules(t)
	type workspace struct{ Use []struct{ DiskPath string } }
	work, newest := decode[workspace](t, "go work edit -json go.work"), decode[workspace](t, "go work edit -json lab/newest.work")
	makefile, err := os.ReadFile(filepath.Join(dir, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	raised := strings.Fields(regexp.MustCompile(`(?m)^RAISED := (.+)$`).FindStringSubmatch(string(makefile))[1])
	selected := map[string]string{}
	for line := range strings.Lines(run(t, served+"go list -m all")) {
		if fields := strings.Fields(line); len(fields) > 1 {
			selected[fields[0]] = fields[1]
		}
	}
	for _, use := range work.Use {
		folder := path.Clean(use.DiskPath)
		if !slices.ContainsFunc(newest.Use, func(u struct{ DiskPath string }) bool { return path.Join("lab", u.DiskPath) == folder }) {
			t.Errorf("%s is in go.work and not in lab/newest.work", folder)
		}
		if !strings.HasPrefix(folder, "adapters/") && !strings.HasPrefix(folder, "store/") || slices.Contains(raised, folder) {
			continue
		}
		for _, r := range found[folder].Require {
			if now := selected[r.Path]; !r.Indirect && !strings.HasPrefix(r.Path, root) && r.Path != "google.golang.org/protobuf" && now != "" && now != r.Version {
				t.Errorf("the workspace selects %s %s, and %s requires %s", r.Path, now, folder, r.Version)
			}
		}
	}
}

// A service must not link the testing package, and an adapter for another transport than
// net/http does not pay for it. Fiber's own utils need testing; the suites are libraries
// of tests. An internal package is linked through one that is not.
func TestPublishedPackagesLinkNoTests(t *testing.T) {
	t.Parallel()
	exempt := regexp.MustCompile(`^(adapters/fiber|conformance|reprisetest|servers)|/nativeapp$|(^|/)internal(/|$)`)
	for line := range strings.Lines(run(t, served+"go list -f '{{.ImportPath}} {{.Deps}}' $packages")) {
		fields := strings.FieldsFunc(strings.TrimPrefix(line, root), func(r rune) bool { return strings.ContainsRune(" []\n", r) })
		if pkg := fields[0]; published.MatchString(pkg) && !exempt.MatchString(pkg) {
			if slices.Contains(fields, "testing") || strings.HasPrefix(pkg, "core") && slices.Contains(fields, "net/http") {
				t.Errorf("%s links testing, or as part of core net/http", pkg)
			}
		}
	}
}

// Only security raises the requirements of published modules, so each go.mod is in one
// entry of the configuration for updates.
func TestUpdatesCoverEveryModule(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(dir, ".github", "dependabot.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for folder := range modules(t) {
		entries := 0
		for entry := range strings.SplitSeq(string(text), "package-ecosystem:") {
			for _, m := range regexp.MustCompile(`(?m)^      - /(\S+)$`).FindAllStringSubmatch(entry, -1) {
				if ok, _ := path.Match(m[1], folder); ok {
					entries++
					if published.MatchString(folder) && !strings.Contains(entry, "open-pull-requests-limit: 0") {
						t.Errorf("%s is published, and its entry in .github/dependabot.yml has no limit of 0", folder)
					}
				}
			}
		}
		if entries != 1 {
			t.Errorf("%s is in %d entries of .github/dependabot.yml, want 1", folder, entries)
		}
	}
}
