package targets_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

// On a machine with an empty module cache, and a proxy that refuses what a framework
// needs, everything else is built. The start and the last line name what is missing, also
// after a failure.
func TestRefusedFrameworkTakesDownOnlyItself(t *testing.T) {
	t.Parallel()
	dir := tree.Copy(t)
	env := refusing(t, "github.com/valyala/fasthttp")
	const missing = "MISSING, because the module proxy does not serve what they need: "

	out, ok := tree.Run(t, dir, env, "bash", "-c", "found=$(.ci/modules go.work) && eval \"$found\" && echo \"$modules\" && go list $packages")
	if want := missing + "adapters/fiber adapters/internal/fasthttp examples/fiber-redis lab/fasthttp lab/fiber"; !ok || !strings.HasPrefix(out, want+"\n\t") || lastLine(out) != want {
		t.Fatalf("passed=%t, want %q at the start and the end:\n%s", ok, want, out)
	}
	if !strings.Contains(out, "403 Forbidden") || !strings.Contains(out, "/lab/gin/testserver\n") || strings.Contains(out, "adapters/fiber\n") {
		t.Errorf("want the answer of the proxy, and every package that needs no fasthttp:\n%s", out)
	}

	some := "MODULES=adapters/nethttp adapters/fiber"
	out, ok = tree.Run(t, dir, env, "make", "build", some)
	if !ok || !strings.HasPrefix(out, missing+"adapters/fiber\n") || lastLine(out) != missing+"adapters/fiber" {
		t.Errorf("passed=%t, want adapters/fiber at the start and in the last line:\n%s", ok, out)
	}
	out, ok = tree.Run(t, dir, append(env, "REPRISE_TEST_REQUIRE=redis,fiber"), "make", "build", some)
	if ok || !strings.Contains(out, "REPRISE_TEST_REQUIRE names fiber") {
		t.Errorf("passed=%t, want a failure that names fiber:\n%s", ok, out)
	}
	tree.Write(t, dir, "adapters/nethttp/broken.go", "package reprisehttp\n\nvar _ int = Missing\n")
	out, ok = tree.Run(t, dir, env, "make", "build", some)
	if end := strings.Index(out, "undefined: Missing"); ok || end < 0 || !strings.Contains(out[end:], missing+"adapters/fiber\n") {
		t.Errorf("passed=%t, want adapters/fiber to be named after the failure:\n%s", ok, out)
	}
}

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
		// The cache has no .info of a module of which only the go.mod was needed.
		_ = json.NewEncoder(w).Encode(map[string]string{"Version": strings.TrimSuffix(path.Base(r.URL.Path), ".info")})
	}))
	t.Cleanup(proxy.Close)
	return []string{
		"GOPROXY=" + proxy.URL, "GONOSUMDB=*", "GOMODCACHE=" + t.TempDir(),
		"GOFLAGS=-trimpath -buildvcs=false -modcacherw", // -trimpath: what was built in another folder need not be built again
	}
}
