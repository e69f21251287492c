// Package tree makes small trees to break.
package tree

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/servers"
)

// Root returns the folder of go.work, above the test that asks.
func Root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	servers.Must(t, err)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.work above the test")
	return ""
}

// Small returns the folder of a new tree with the project's Makefile and scripts, and the
// given files by their path.
func Small(t *testing.T, files map[string]string) string {
	t.Helper()
	from, to := Root(t), t.TempDir()
	makefile, err := os.ReadFile(filepath.Join(from, "Makefile"))
	servers.Must(t, errors.Join(err, os.CopyFS(filepath.Join(to, ".ci"), os.DirFS(filepath.Join(from, ".ci")))))
	Write(t, to, "Makefile", string(makefile))
	for path, text := range files {
		Write(t, to, path, text)
	}
	return to
}

// Write writes a file of a tree, and the folders on its way.
func Write(t *testing.T, dir, path, text string) {
	t.Helper()
	path = filepath.Join(dir, filepath.FromSlash(path))
	servers.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	servers.Must(t, os.WriteFile(path, []byte(text), 0o644))
}

// Run runs a program in a tree, away from the make and the workspace mode that run the
// test itself, with more variables in its environment. It returns the program's output,
// both streams, and whether it exited with 0.
func Run(t *testing.T, dir string, env []string, name string, args ...string) (output string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "MAKE") || name == "MFLAGS" || name == "GOWORK" || strings.HasPrefix(name, "REPRISE_")
	}), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), err == nil
}

// basics are programs that every machine has.
var basics = []string{
	"awk", "bash", "cat", "cp", "dirname", "env", "find", "grep", "head", "id", "ls", "mkdir", "mktemp", "mv", "rm", "sed", "sh", "sort", "tail",
	"touch", "tr", "uname", "xargs",
}

// Link puts programs of this machine into a folder.
func Link(t *testing.T, folder string, programs ...string) {
	t.Helper()
	for _, name := range programs {
		program, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(program, filepath.Join(folder, name))
		}
		servers.Must(t, err)
	}
}

// GoOnly returns the environment of a machine that has only Go, make, git, a C compiler
// and the programs named: no server, no browser, and an empty HOME. The folder of its
// programs comes first, then HOME. The module and build caches are those of this machine.
func GoOnly(t *testing.T, programs ...string) []string {
	t.Helper()
	path := t.TempDir()
	Link(t, path, "go", "make", "git", "cc", "gcc", "as", "ld")
	Link(t, path, slices.Concat(basics, programs)...)
	env := []string{"PATH=" + path, "HOME=" + t.TempDir()}
	for _, name := range []string{"GOPROXY", "GOMODCACHE", "GOCACHE"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		servers.Must(t, err)
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	return env
}
