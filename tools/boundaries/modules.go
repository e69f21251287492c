package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// newest is the workspace with the newest frameworks and clients.
const newest = "lab/newest.work"

// outside are the modules that are in no go.work, because their requirements would raise
// the oldest releases that the others are tested on.
var outside = []string{
	"adapters/fiber3", "blob", "caddy", "examples/consumer", "examples/etcd", "examples/fiber3-memory", "examples/payments-river", "examples/sql",
	"examples/telemetry", "lab/blob", "lab/console", "lab/etcd", "lab/etcd/testserver", "lab/fiber3", "lab/hour", "lab/openapi", "lab/otel", "store/etcd", "tools",
}

// frameworks are the web frameworks. A module that is not published has one at most, so
// that one that a proxy refuses takes down only its own.
var frameworks = []string{
	"github.com/gin-gonic/gin",
	"github.com/gofiber/fiber/v2",
	"github.com/gofiber/fiber/v3",
	"github.com/labstack/echo/v4",
	"github.com/labstack/echo/v5",
}

// tested are the frameworks and clients whose oldest releases the tests run on.
var tested = append([]string{
	"connectrpc.com/connect",
	"github.com/jackc/pgx/v5",
	"github.com/redis/go-redis/v9",
	"github.com/valyala/fasthttp",
	"google.golang.org/grpc",
}, frameworks...)

// goVersions are the language versions that a go.mod may ask for; the second only where a
// dependency needs it.
var goVersions = []string{"1.25.0", "1.26.0"}

// module is the part of a go.mod that the checks use.
type module struct {
	path      string // below the root, such as "adapters/gin"
	goVersion string
	toolchain string
	inside    bool              // of go.work
	versions  map[string]string // of the required modules
	direct    []string          // the requirements without an "// indirect" comment
}

// loadModules reads every go.mod below dir, and returns those that stand in no list.
func loadModules(ctx context.Context, dir string) (modules []module, bad []string, err error) {
	inside, err := uses(ctx, dir, "go.work")
	if err != nil {
		return nil, nil, err
	}
	newer, err := uses(ctx, dir, newest)
	if err != nil {
		return nil, nil, err
	}
	for _, folder := range inside {
		if !slices.Contains(newer, folder) {
			bad = append(bad, fmt.Sprintf("%s: is in go.work and not in %s", folder, newest))
		}
	}
	err = fs.WalkDir(os.DirFS(dir), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && file != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return fs.SkipDir
		}
		if folder := path.Dir(file); path.Base(file) == "go.mod" {
			m, err := loadModule(ctx, dir, folder)
			if err != nil {
				return err
			}
			m.inside = slices.Contains(inside, folder)
			if !m.inside && !slices.ContainsFunc(outside, func(o string) bool { return within(folder, o) }) {
				bad = append(bad, folder+": is a module that is not in go.work")
			}
			modules = append(modules, m)
		}
		return nil
	})
	return modules, bad, err
}

// uses returns the folders below dir that a workspace uses.
func uses(ctx context.Context, dir, work string) ([]string, error) {
	var w struct{ Use []struct{ DiskPath string } }
	if err := goJSON(ctx, dir, &w, "work", "edit", "-json", filepath.Join(dir, filepath.FromSlash(work))); err != nil {
		return nil, err
	}
	var folders []string
	for _, u := range w.Use {
		folders = append(folders, path.Join(path.Dir(work), filepath.ToSlash(u.DiskPath)))
	}
	return folders, nil
}

func loadModule(ctx context.Context, dir, folder string) (module, error) {
	var mod struct {
		Go, Toolchain string
		Require       []struct {
			Path, Version string
			Indirect      bool
		}
	}
	if err := goJSON(ctx, filepath.Join(dir, filepath.FromSlash(folder)), &mod, "mod", "edit", "-json"); err != nil {
		return module{}, err
	}
	m := module{path: folder, goVersion: mod.Go, toolchain: mod.Toolchain, versions: map[string]string{}}
	for _, r := range mod.Require {
		m.versions[r.Path] = r.Version
		if !r.Indirect {
			m.direct = append(m.direct, r.Path)
		}
	}
	return m, nil
}

func goJSON(ctx context.Context, dir string, v any, args ...string) error {
	out, err := runGo(ctx, dir, "", args...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, v); err != nil {
		return fmt.Errorf("output of go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// checkModules returns the violations of the rules of a go.mod. The modules of go.work
// require the frameworks and clients in the versions of the published ones among them:
// the tests run on the oldest.
func checkModules(modules []module) []string {
	var bad []string
	oldest := map[string]string{}
	for _, m := range modules {
		for _, required := range m.direct {
			if published(m.path) && m.inside && slices.Contains(tested, required) {
				oldest[required] = m.versions[required]
			}
		}
	}
	for _, m := range modules {
		report := func(format string, args ...any) {
			bad = append(bad, m.path+"/go.mod: "+fmt.Sprintf(format, args...))
		}
		if !slices.Contains(goVersions, m.goVersion) {
			report("go %s, want one of %s", m.goVersion, strings.Join(goVersions, ", "))
		}
		if m.toolchain != "" {
			report("toolchain %s: consumers choose their own", m.toolchain)
		}
		var own []string
		for _, required := range m.direct {
			if slices.Contains(frameworks, required) {
				own = append(own, required)
			}
			if got, want := m.versions[required], oldest[required]; m.inside && want != "" && got != want {
				report("requires %s %s, want %s as the published modules: the tests run on the oldest", required, got, want)
			}
		}
		if len(own) > 1 && !published(m.path) {
			report("requires %s: one framework a module, so that one that is refused takes down only itself", strings.Join(own, " and "))
		}
	}
	return bad
}
