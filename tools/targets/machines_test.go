//go:build unix

package targets_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

// machine returns a PATH with the basics, make, and more programs of this machine. It has
// no getconf and, if they are not named, no Go, git or C compiler.
func machine(t *testing.T, programs ...string) string {
	t.Helper()
	path := t.TempDir()
	tree.Link(t, path, tree.Basics...)
	tree.Link(t, path, append(programs, "make")...)
	return path
}

// fake puts programs into a folder, each a line of shell.
func fake(t *testing.T, folder string, programs map[string]string) {
	t.Helper()
	for name, line := range programs {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+line+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTargetsSayWhichProgramIsMissing(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, target, want string
		programs           []string
		fakes              map[string]string
	}{
		{"no Go", "build", "Go is not installed: get Go 1.26 or newer from https://go.dev/dl\n", nil, nil},
		{"no Go for the demo", "demo", "Go is not installed: get Go 1.26 or newer from https://go.dev/dl\n", nil, nil},
		{"Go that knows toolchains", "build", "Go 1.22.3 is too old: get Go 1.26 or newer from https://go.dev/dl\n", nil, map[string]string{
			"go": `[ "$1 $GOWORK" = "version off" ] && echo go version go1.22.3 linux/amd64 && exit; echo "go: go.work requires go >= 1.26.0 (running go 1.22.3; GOTOOLCHAIN=local)" >&2; exit 1`,
		}},
		{"Go that does not", "race", "Go 1.20.14 is too old: get Go 1.26 or newer from https://go.dev/dl\n", nil, map[string]string{
			"go": `[ "$*" = "env GOVERSION" ] && echo go1.20.14 && exit; echo "invalid go version" >&2; exit 1`,
		}},
		{"no C compiler", "race", "the race detector needs a C compiler, and there is no gcc: install gcc\n", []string{"go"}, nil},
		{"no C compiler for the tests", "test", "Install (names of Debian and Ubuntu): gcc libc6-dev ", []string{"go"}, map[string]string{"id": "echo 1000"}},
		{"no git", "release/dry", "git is not installed", []string{"go"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := machine(t, row.programs...)
			for name := range row.fakes {
				_ = os.Remove(filepath.Join(path, name))
			}
			fake(t, path, row.fakes)
			out, ok := tree.Run(t, small(t, nil), []string{"PATH=" + path, "CC=gcc"}, "make", row.target)
			if ok || !strings.Contains(out, row.want) {
				t.Errorf("make %s passed=%t, want %q:\n%s", row.target, ok, row.want, out)
			}
		})
	}
}

// A source archive has no history, and its machine may have no git, no C compiler and no
// getconf.
func TestChecksOfASourceArchive(t *testing.T) {
	t.Parallel()
	out, ok := tree.Run(t, tree.Copy(t), []string{"PATH=" + machine(t, "go")}, "make", "build", "isolated", "boundaries", "MODULES=core")
	if !ok {
		t.Errorf("failed:\n%s", out)
	}
}

// withSuite returns a small tree with the program that runs the tests, and the
// environment of a machine that has a URL for each server, and no getconf.
func withSuite(t *testing.T, files map[string]string) (dir string, env []string) {
	t.Helper()
	dir = small(t, files)
	if err := os.CopyFS(filepath.Join(dir, "tools", "suite"), os.DirFS(filepath.Join(tree.Root(t), "tools", "suite"))); err != nil {
		t.Fatal(err)
	}
	path := machine(t, "go", "gcc", "as", "ld")
	if err := os.Remove(filepath.Join(path, "id")); err != nil {
		t.Fatal(err)
	}
	fake(t, path, map[string]string{"id": "echo 1000", "pgbouncer": ""})
	return dir, []string{"PATH=" + path, "CC=gcc", "REPRISE_TEST_REDIS_URL=redis://127.0.0.1:1", "REPRISE_TEST_POSTGRES_URL=postgres://127.0.0.1:1/x"}
}

func TestLastLineOfMakeTest(t *testing.T) {
	t.Parallel()
	dir, env := withSuite(t, nil)
	out, ok := tree.Run(t, dir, env, "make", "test")
	if last := lastLine(out); !ok || !strings.HasPrefix(last, "make test: 1 passed, 0 failed, 0 skipped, of 1 packages in ") ||
		!strings.Contains(last, " on ") || !strings.HasSuffix(last, "; left to make check: nothing") {
		t.Errorf("passed=%t, the last line is %q:\n%s", ok, last, out)
	}
}

// flaky is a test of package core that fails in its first run in each folder.
const flaky = `package core

import (
	"os"
	"testing"
)

func TestFlaky(t *testing.T) {
	if os.Mkdir("ran", 0o700) == nil {
		t.Error("late")
	}
}
`

// Of the checks it has one that runs tests outside of the workspace.
func TestLastLineOfCI(t *testing.T) {
	t.Parallel()
	const line = "flaky: core (TestFlaky), core/a (TestFlaky)"
	for name, row := range map[string]struct {
		more map[string]string
		ok   bool
		want string
	}{
		"none":   {nil, true, ""},
		"two":    {map[string]string{"core/f_test.go": flaky, "core/a/f_test.go": flaky}, true, line},
		"three":  {map[string]string{"core/f_test.go": flaky, "core/a/f_test.go": flaky, "blob/f_test.go": flaky, "blob/go.mod": "module " + root + "blob\n\ngo 1.25.0\n"}, false, line + ", blob (TestFlaky)"},
		"broken": {map[string]string{"core/f_test.go": flaky, "core/b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) { t.Error(1) }\n"}, false, "flaky: core (TestFlaky)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, env := withSuite(t, row.more)
			text, err := os.ReadFile(filepath.Join(dir, "Makefile"))
			if err != nil {
				t.Fatal(err)
			}
			before, after, _ := strings.Cut(string(text), "\nchecks: ")
			_, after, _ = strings.Cut(after, "\n")
			tree.Write(t, dir, "Makefile", before+"\nchecks: outside\n"+after)
			out, ok := tree.Run(t, dir, env, "bash", ".ci/run")
			_, missing, _ := strings.Cut(out, "\nno valkey-server")
			if lastLine(out) != row.want && row.want != "" || ok != row.ok || row.want == "" && strings.Contains(out, "flaky: ") || !strings.Contains(missing, row.want) {
				t.Errorf("passed=%t, the last line is %q, want %q:\n%s", ok, lastLine(out), row.want, out)
			}
		})
	}
}

func TestTargetsWorkInAPathWithSpaces(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a new folder")
	if err := os.Rename(small(t, nil), dir); err != nil {
		t.Fatal(err)
	}
	tree.Write(t, dir, ".bin/golangci-lint", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(dir, ".bin", "golangci-lint"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, ok := tree.Run(t, dir, nil, "make", "-o", ".bin/golangci-lint", "build", "isolated", "tidy", "lint", "race")
	if !ok || strings.Contains(out, "warning") {
		t.Errorf("passed=%t:\n%s", ok, out)
	}
}

func TestTargetsWorkForAUserWhoIsNotRoot(t *testing.T) {
	t.Parallel()
	const other = 65534
	dir, home := small(t, nil), t.TempDir()
	cmd := exec.CommandContext(t.Context(), "make", "build", "isolated", "tidy")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
		for _, folder := range []string{dir, home} {
			out, err := exec.CommandContext(t.Context(), "chown", "-R", "65534:65534", folder).CombinedOutput()
			if err == nil {
				err = os.Chmod(filepath.Dir(folder), 0o755)
			}
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
