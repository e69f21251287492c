package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/available"
	"github.com/reprise-go/reprise/tools/internal/tree"
)

// On a machine with an empty module cache, and a proxy that refuses a framework or what
// the framework needs, everything else is built and tested. The start and the last line
// say what is left out, also when a test fails.
func TestARefusedFrameworkTakesDownOnlyItself(t *testing.T) {
	t.Parallel()
	for framework, module := range map[string]string{
		"fiber": "github.com/valyala/fasthttp",
		"gin":   "github.com/gin-gonic/gin",
	} {
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			dir := tree.Copy(t)
			env := refusing(t, module)
			adapter := "adapters/" + framework

			run(t, true, dir, env, "make", "build")
			build := run(t, true, dir, env, "make", "build", "race", "MODULES=adapters/nethttp "+adapter)
			start, _, _ := strings.Cut(build, "=\n"+lastLine(build))
			for _, want := range []string{module, "403 Forbidden", "columns not tested: " + framework, adapter, "lab/serve/serve" + framework} {
				if !strings.Contains(lastLine(build), want) {
					t.Errorf("the last line does not name %s:\n%s", want, build)
				}
			}
			if !strings.Contains(start, "does not serve everything") || !strings.Contains(start, module) {
				t.Errorf("the start does not name %s:\n%s", module, build)
			}
			if want := "ok  \t" + available.Root + "adapters/nethttp"; !strings.Contains(build, want) {
				t.Errorf("no %q:\n%s", want, build)
			}

			column := "TestMatrix/store=memory/adapter=" + framework
			found := filepath.Join(dir, ".cache", "available", "go")
			matrix := slices.Concat(env, []string{
				"GOWORK=" + filepath.Join(found, "go.work"), "GOFLAGS=-trimpath -buildvcs=false -tags=without_" + framework,
			})
			out, _ := tree.Run(t, dir, matrix, "go", "test", "-v", "-vet=off", "-run", column, "./lab/matrix")
			if !strings.Contains(out, "--- SKIP: "+column) {
				t.Errorf("the matrix does not skip the column:\n%s", out)
			}
			required := "REPRISE_TEST_REQUIRE=redis," + framework
			out, _ = tree.Run(t, dir, append(matrix, required), "go", "test", "-v", "-vet=off", "-run", column, "./lab/matrix")
			if !strings.Contains(out, "--- FAIL: "+column) {
				t.Errorf("the matrix does not fail the column that is required:\n%s", out)
			}
			out = run(t, false, dir, append(env, required), "make", "build")
			if !strings.Contains(out, "REPRISE_TEST_REQUIRE names "+framework) {
				t.Errorf("the failure does not name %s:\n%s", framework, out)
			}

			tree.Write(t, dir, "adapters/nethttp/failing_test.go", failing)
			out = run(t, false, dir, env, "make", "race", "MODULES=adapters/nethttp")
			if !strings.Contains(out, "--- FAIL: TestFailing") || !strings.HasPrefix(lastLine(out), "LEFT OUT: ") {
				t.Errorf("the last line of a run that fails is %q:\n%s", lastLine(out), out)
			}
		})
	}
}

const failing = `package reprisehttp_test

import "testing"

func TestFailing(t *testing.T) { t.Error("always") }
`

// refusing returns the environment of a machine with an empty module cache, and a proxy
// that has what the module cache of this one has but answers 403 for some modules.
func refusing(t *testing.T, modules ...string) []string {
	t.Helper()
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	downloads := http.Dir(filepath.Join(strings.TrimSpace(string(cache)), "cache", "download"))
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, m := range modules {
			if strings.HasPrefix(r.URL.Path, "/"+m+"/") {
				http.Error(w, "refused by policy", http.StatusForbidden)
				return
			}
		}
		if file, err := downloads.Open(r.URL.Path); err == nil || path.Ext(r.URL.Path) != ".info" {
			if err == nil {
				_ = file.Close()
			}
			http.FileServer(downloads).ServeHTTP(w, r)
			return
		}
		// The cache has no .info of a module whose go.mod was all that anybody needed.
		_ = json.NewEncoder(w).Encode(map[string]string{"Version": strings.TrimSuffix(path.Base(r.URL.Path), ".info")})
	}))
	t.Cleanup(proxy.Close)
	return []string{
		"GOPROXY=" + proxy.URL, "GONOSUMDB=*", "GOMODCACHE=" + t.TempDir(),
		"GOFLAGS=-trimpath -buildvcs=false -modcacherw", // -trimpath: what was built in another folder need not be built again
	}
}

// run runs a program, which has to pass or to fail, and returns what it printed.
func run(t *testing.T, pass bool, dir string, env []string, name string, args ...string) string {
	t.Helper()
	out, ok := tree.Run(t, dir, env, name, args...)
	if ok != pass {
		t.Fatalf("%s %s passed=%t, want %t:\n%s", name, strings.Join(args, " "), ok, pass, out)
	}
	return out
}

func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}
