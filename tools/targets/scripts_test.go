package targets_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

func TestFuzzRunsEveryTarget(t *testing.T) {
	t.Parallel()
	dir := small(t, map[string]string{
		"core/fuzz_test.go":        fuzzTarget("core", "FuzzOne", "") + "func FuzzTwo(f *testing.F) { f.Fuzz(func(*testing.T, string) {}) }\n",
		"store/redis/fuzz_test.go": fuzzTarget("redis", "FuzzThree", ""),
	})
	out, ok := tree.Run(t, dir, nil, "make", "fuzz", "FUZZTIME=1x")
	if !ok {
		t.Errorf("make fuzz failed:\n%s", out)
	}
	for _, want := range []string{root + "core FuzzOne\n", root + "core FuzzTwo\n", root + "store/redis FuzzThree\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q did not run:\n%s", want, out)
		}
	}
}

func TestFuzzGoesOnAfterAFailureAndFails(t *testing.T) {
	t.Parallel()
	dir := small(t, map[string]string{
		"core/fuzz_test.go":        fuzzTarget("core", "FuzzBad", `f.Fuzz(func(t *testing.T, s string) { t.Error("always") })`),
		"store/redis/fuzz_test.go": fuzzTarget("redis", "FuzzGood", ""),
	})
	out := fails(t, dir, "fuzz: failed: "+root+"core.FuzzBad", "fuzz", "FUZZTIME=1x")
	if !strings.Contains(out, "store/redis FuzzGood") {
		t.Errorf("the target after the failure did not run:\n%s", out)
	}
}

func TestFuzzWithoutATargetFails(t *testing.T) {
	t.Parallel()
	fails(t, small(t, nil), "fuzz: no target found", "fuzz")
}

// On a machine without servers, where no program may be installed, the tests must not
// pass by skipping.
func TestServersNamesMissingPrograms(t *testing.T) {
	t.Parallel()
	out, ok := servers(t, map[string]string{"id": "echo 1000"})
	for _, want := range []string{"redis-server redis-sentinel", "REPRISE_TEST_REDIS_URL", "REPRISE_TEST_POSTGRES_URL"} {
		if ok || !strings.Contains(out, want) {
			t.Errorf("passed=%t, want a failure that names %s:\n%s", ok, want, out)
		}
	}
}

func TestServersInstallsWhatIsMissing(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy")
	out, ok := servers(t, map[string]string{
		"id":            "echo 0",
		"chmod":         "",
		"rm":            `/bin/rm "$@"`,
		"pgbouncer":     "",
		"valkey-server": "echo Valkey server v=8.0.1 sha=00000000:0",
		"chromium":      "",
		"apt-get": `[ "$2" = install ] && [ -e "$SERVERS_POLICY" ] || exit 0
for package; do
	printf '#!/bin/sh\necho v=7.0.15\n' >"${0%/*}/$package"
	/bin/chmod 755 "${0%/*}/$package"
done`,
	}, "SERVERS_POLICY="+policy, "REPRISE_TEST_POSTGRES_URL=postgres://127.0.0.1:1/x")
	if !ok || !strings.Contains(out, "installing redis-server redis-sentinel\n") || !strings.Contains(lastLine(out), ",redis,") {
		t.Errorf("passed=%t, want Redis to be installed and required:\n%s", ok, out)
	}
	if _, err := os.Stat(policy); err == nil {
		t.Error("services may still not start")
	}
}

func TestServersRefusesAnOldRedis(t *testing.T) {
	t.Parallel()
	out, ok := servers(t, map[string]string{
		"id":             "echo 1000",
		"redis-server":   "echo Redis server v=6.2.16 sha=00000000:0",
		"redis-sentinel": "",
	})
	if ok || !strings.Contains(out, "redis-server is 6.2.16, want 7.0 or newer") {
		t.Errorf("passed=%t, want a failure that names both versions:\n%s", ok, out)
	}
}

func TestServersTakesAURLForAServer(t *testing.T) {
	t.Parallel()
	out, ok := servers(t, map[string]string{
		"id":        "echo 1000",
		"pgbouncer": "",
	}, "REPRISE_TEST_REDIS_URL=redis://127.0.0.1:1", "REPRISE_TEST_POSTGRES_URL=postgres://127.0.0.1:1/x")
	if !ok || strings.Contains(lastLine(out), "redis") || !strings.HasSuffix(lastLine(out), "pgbouncer") {
		t.Errorf("passed=%t, want success, and no redis to require:\n%s", ok, out)
	}
}

func TestServersListsWhatTestsMayNotSkip(t *testing.T) {
	t.Parallel()
	out, ok := servers(t, map[string]string{
		"redis-server":   "echo Redis server v=7.0.15 sha=00000000:0",
		"redis-sentinel": "",
		"pgbouncer":      "",
		"initdb":         "",
		"postgres":       "echo 'postgres (PostgreSQL) 18.1 (Debian 18.1-1)'",
		"valkey-server":  "echo Valkey server v=8.0.1 sha=00000000:0",
		"chromium":       "",
		"npm":            "",
		"nginx":          "",
		"mktemp":         "exit 1",
	})
	// The machine decides whether clocks can be stepped and small disks mounted, and it may
	// have MariaDB in a folder that is not on PATH.
	list := strings.Replace(strings.TrimPrefix(strings.TrimPrefix(lastLine(out), "tmpfs,"), "faketime,"), "mariadb,", "", 1)
	if !ok || list != "nginx,npm,chromium,valkey,redis,postgres,pgbouncer" {
		t.Errorf("passed=%t, printed %q, want the seven and what the machine can", ok, out)
	}
}

// Tests are skipped for want of these two; the reason is the output of the probe.
func TestServersSaysWhyAProbeFailed(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	out, ok := servers(t, map[string]string{
		"id":        "echo 1000",
		"pgbouncer": "",
		"npm":       "echo npm error code E503 >&2; echo npm error more >&2; exit 1",
		"mktemp":    "echo /nowhere",
		"mount":     "echo only root can do that >&2; exit 1",
	}, "REPRISE_TEST_REDIS_URL=redis://127.0.0.1:1", "REPRISE_TEST_POSTGRES_URL=postgres://127.0.0.1:1/x", "REPRISE_MISSING="+missing)
	said, err := os.ReadFile(missing)
	if err != nil || !strings.Contains(string(said), "no npm registry (npm error code E503): ") {
		t.Errorf("recorded %q, %v", said, err)
	}
	for _, want := range []string{"no npm registry (npm error code E503): ", "no tmpfs can be mounted (only root can do that): "} {
		if !ok || !strings.Contains(out, want) {
			t.Errorf("passed=%t, want success and %q:\n%s", ok, want, out)
		}
	}
}

// Valkey is not in every release of a distribution, so its absence is said and not a
// failure.
func TestServersDoesWithoutValkey(t *testing.T) {
	t.Parallel()
	for name, valkey := range map[string]map[string]string{
		"none": {"id": "echo 1000"},
		"old":  {"id": "echo 1000", "valkey-server": "echo Valkey server v=7.0.0"},
	} {
		valkey["pgbouncer"] = ""
		out, ok := servers(t, valkey, "REPRISE_TEST_REDIS_URL=redis://127.0.0.1:1", "REPRISE_TEST_POSTGRES_URL=postgres://127.0.0.1:1/x")
		if !ok || strings.Contains(lastLine(out), "valkey") || !strings.Contains(out, "no valkey-server 7.2 or newer") {
			t.Errorf("%s: passed=%t, want success, a line about it, and no valkey to require:\n%s", name, ok, out)
		}
	}
}

// Without the registry, or with another package than the pinned one, the newer versions
// of PostgreSQL are left out, and that is said; where the registry answers it is a
// failure.
func TestPostgresSaysThatVersionsAreMissing(t *testing.T) {
	t.Parallel()
	dir, path, missing := small(t, nil), machine(t, "cmp"), filepath.Join(t.TempDir(), "missing")
	if err := os.CopyFS(filepath.Join(dir, "lab", "servers", "postgres"), os.DirFS(filepath.Join(tree.Root(t), "lab", "servers", "postgres"))); err != nil {
		t.Fatal(err)
	}
	fake(t, path, map[string]string{"npm": "echo npm error code EINTEGRITY >&2; echo npm error more >&2; exit 1"})
	const want = "PostgreSQL 16 to 18 not tested, because they cannot be fetched from the npm registry: npm error code EINTEGRITY\n"
	for require, passes := range map[string]bool{"redis": true, "npm,redis": false} {
		out, ok := tree.Run(t, dir, []string{"PATH=" + path, "REPRISE_MISSING=" + missing, "REPRISE_TEST_REQUIRE=" + require}, "bash", ".ci/postgres", ".")
		if said, err := os.ReadFile(missing); ok != passes || out != "postgres: "+want || err != nil || !strings.HasSuffix(string(said), want) {
			t.Errorf("requires %s: passed=%t, recorded %q, %v:\n%s", require, ok, said, err, out)
		}
	}
}

// servers runs .ci/servers with a PATH that has the programs it is written in and the
// given ones, each a line of shell.
func servers(t *testing.T, programs map[string]string, env ...string) (output string, ok bool) {
	t.Helper()
	path := t.TempDir()
	for _, name := range []string{"bash", "cat", "dirname", "gcc", "go", "head", "id", "sort", "tr"} {
		if _, replaced := programs[name]; !replaced {
			tree.Link(t, path, name)
		}
	}
	fake(t, path, programs)
	return tree.Run(t, tree.Root(t), append(env, "PATH="+path), "bash", ".ci/servers")
}

func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// fuzzTarget returns a test file with one fuzz target; with an empty body it never fails.
func fuzzTarget(pkg, name, body string) string {
	if body == "" {
		body = "f.Fuzz(func(*testing.T, string) {})"
	}
	return "package " + pkg + "\n\nimport \"testing\"\n\nfunc " + name + "(f *testing.F) { " + body + " }\n"
}
