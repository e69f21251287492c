package program

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/servers"
)

// service is an upstream process in some language, which can be killed and started again.
// The file of its effects has a line with the key of each order.
type service struct {
	command      []string
	url, address string
	effects      string

	cmd *exec.Cmd
}

// languages has an upstream for each language. A function returns the command of a
// program that serves at $LISTEN and appends its effects to $EFFECTS.
var languages = map[string]func(tb testing.TB, s *service, dir string) []string{
	"go": func(tb testing.TB, s *service, dir string) []string {
		tb.Helper()
		s.url = "h2c://" + s.address
		target := filepath.Join(dir, "upstream")
		if out, err := exec.CommandContext(tb.Context(), "go", "build", "-o", target, "./testdata/upstreams/golang").CombinedOutput(); err != nil {
			tb.Fatalf("%v\n%s", err, out)
		}
		return []string{target}
	},
	"node": func(tb testing.TB, _ *service, dir string) []string {
		tb.Helper()
		need(tb, "node")
		must(tb, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "upstreams", "express"))))
		install := exec.CommandContext(tb.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
		install.Dir = dir
		if out, err := install.CombinedOutput(); err != nil {
			missing(tb, "npm", "express cannot be installed from the npm registry: "+string(out))
		}
		return []string{"node", filepath.Join(dir, "server.js")}
	},
	"python":     script("python3", "python.py"),
	"nginx":      nginx("nginx.conf"),
	"reads.conf": nginx("reads.conf"),
	"reads.py":   script("python3", "reads.py"),
	"reads.js":   script("node", "reads.js"),
}

func script(program, name string) func(testing.TB, *service, string) []string {
	return func(tb testing.TB, _ *service, _ string) []string {
		tb.Helper()
		need(tb, program)
		return []string{program, filepath.Join("testdata", "upstreams", name)}
	}
}

func nginx(name string) func(testing.TB, *service, string) []string {
	return func(tb testing.TB, s *service, dir string) []string {
		tb.Helper()
		need(tb, "nginx")
		text, err := os.ReadFile(filepath.Join("testdata", "upstreams", name))
		must(tb, err)
		_, conf, _ := strings.Cut(string(text), "\n")
		file := filepath.Join(dir, "nginx.conf")
		must(tb, os.WriteFile(file, []byte(strings.NewReplacer("DIR", dir, "LISTEN", s.address, "EFFECTS", s.effects).Replace(conf)), 0o600))
		return []string{"nginx", "-p", dir, "-c", file, "-e", "stderr"}
	}
}

// need skips the test without a program, unless REPRISE_TEST_REQUIRE has it.
func need(tb testing.TB, program string) {
	tb.Helper()
	if _, err := exec.LookPath(program); err != nil {
		missing(tb, program, err.Error())
	}
}

func missing(tb testing.TB, name, text string) {
	tb.Helper()
	if servers.Required(tb, name) {
		tb.Fatal(text)
	}
	tb.Skip(text)
}

// startService starts the upstream of a language.
func startService(tb testing.TB, language string) *service {
	tb.Helper()
	dir := tb.TempDir()
	s := &service{address: servers.FreeAddr(tb), effects: filepath.Join(dir, "effects")}
	s.url = "http://" + s.address
	s.command = languages[language](tb, s, dir)
	s.start(tb)
	tb.Cleanup(s.kill)
	return s
}

// start starts the process and waits until it serves.
func (s *service) start(tb testing.TB) {
	tb.Helper()
	s.cmd = exec.CommandContext(context.WithoutCancel(tb.Context()), s.command[0], s.command[1:]...)
	s.cmd.Env = append(os.Environ(), "LISTEN="+s.address, "EFFECTS="+s.effects)
	must(tb, s.cmd.Start())
	await(tb, "the upstream", func() bool { return listens(s.address) })
}

// kill kills the process, and returns when its port is free.
func (s *service) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// runs returns the number of effects of each key.
func (s *service) runs(tb testing.TB) map[string]int {
	tb.Helper()
	text, err := os.ReadFile(s.effects)
	must(tb, err)
	runs := map[string]int{}
	for line := range strings.Lines(string(text)) {
		runs[strings.Trim(line, "\"\n")]++
	}
	return runs
}
