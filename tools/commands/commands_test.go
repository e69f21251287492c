//go:build unix

package commands_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

// machine has the clone, and servers at other addresses than those that the pages name.
type machine struct {
	clone   string
	env     []string
	place   *strings.Replacer // the addresses of the pages
	at      map[string]string // addresses of servers
	port    string            // of the examples
	serving sync.Mutex        // one program at a time listens on it
}

// repository is where a reader clones from.
const repository = "https://github.com/reprise-go/reprise"

func clone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "reprise")
	if out, ok := tree.Run(t, ".", nil, "git", "clone", "--quiet", tree.Root(t), dir); !ok {
		t.Fatal(out)
	}
	return dir
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{clone: clone(t), env: tree.GoOnly(t, "curl"), at: map[string]string{}, port: portOf(t, freeAddr(t))}
	for name, start := range servers {
		m.at[name] = start(t)
	}
	bin, _ := strings.CutPrefix(m.env[0], "PATH=")
	home, _ := strings.CutPrefix(m.env[1], "HOME=")
	if m.at["redis"] != "" { // on another port than the default one of the clients
		tree.Link(t, bin, "redis-server")
		client, _ := exec.LookPath("redis-cli")
		tree.Write(t, bin, "redis-cli", fmt.Sprintf("#!/bin/sh\nexec %s -p %s \"$@\"\n", client, portOf(t, m.at["redis"])))
		if err := os.Chmod(filepath.Join(bin, "redis-cli"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if m.at["postgres"] != "" {
		tree.Link(t, bin, "psql")
	}
	here, nats := "127.0.0.1:"+m.port, portOf(t, freeAddr(t))
	m.place = strings.NewReplacer(
		"localhost:8080", here, "127.0.0.1:8080", here, "localhost:6379", m.at["redis"], "127.0.0.1:6379", m.at["redis"],
		"postgres://localhost/postgres", "'"+m.at["postgres"]+"'", "postgres://127.0.0.1/postgres", "'"+m.at["postgres"]+"'",
		"root@tcp(127.0.0.1:3306)/test", m.at["mariadb"], "localhost:4222", "127.0.0.1:"+nats, "127.0.0.1:4222", "127.0.0.1:"+nats, "-p 4222", "-p "+nats)
	sources, _ := tree.Run(t, m.clone, nil, "git", "ls-files", "examples/*.go")
	for file := range strings.FieldsSeq(sources) {
		text, err := os.ReadFile(filepath.Join(m.clone, file))
		if err != nil {
			t.Fatal(err)
		}
		tree.Write(t, m.clone, file, strings.NewReplacer("localhost:8080", here, "127.0.0.1:8080", here).Replace(string(text)))
	}
	m.env[0] += ":" + filepath.Join(home, "go", "bin")
	m.env = append(m.env, "TMPDIR="+t.TempDir(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+m.clone+".insteadOf", "GIT_CONFIG_VALUE_0="+repository)
	runs(t, m.command(t, m.clone, "go install ./cmd/reprise"))
	return m
}

// command returns a script of the shell.
func (m *machine) command(t *testing.T, dir, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = dir, m.env
	return cmd
}

func TestEveryCommandRuns(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	makefile, err := os.ReadFile(filepath.Join(m.clone, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range find(t, m.clone) {
		if b.notRun != "" || b.language != "sh" {
			continue
		}
		lines := b.commands(t, string(makefile))
		if len(lines) == 0 {
			continue
		}
		t.Run(b.at, func(t *testing.T) {
			t.Parallel()
			switch {
			case b.long && testing.Short():
				t.Skip("it takes long")
			case b.needs != "" && m.at[b.needs] == "":
				t.Skipf("it needs %s", b.needs)
			}
			m.run(t, b, lines)
		})
	}
}

// run runs the commands of a block.
func (m *machine) run(t *testing.T, b block, lines []string) {
	t.Helper()
	for i := range lines {
		lines[i] = m.place.Replace(lines[i])
	}
	dir := m.folder(t, lines)
	var out buffer
	if len(b.until) > 0 {
		m.serving.Lock()
		defer m.serving.Unlock()
	}
	for i, until := range b.until {
		line, _, _ := strings.Cut(lines[i], " #")
		stop := m.serve(t, dir, strings.TrimSuffix(strings.TrimSpace(line), "&"), until, &out)
		defer stop() //nolint:gocritic // the servers serve until the block has run
	}
	cmd := m.command(t, dir, strings.Join(lines[len(b.until):], "\n"))
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v:\n%s", err, out.String())
	}
	for _, want := range b.prints { // a program may print it after its client has the answer
		if !poll(t, func() bool { return strings.Contains(out.String(), want) }) {
			t.Errorf("%q is not printed:\n%s", want, out.String())
		}
	}
}

// moduleOfOurs matches the arguments of go get.
var moduleOfOurs = regexp.MustCompile(regexp.QuoteMeta(ours) + `\S+`)

// folder returns where commands run: in the clone, or elsewhere if they do not name
// anything of it.
func (m *machine) folder(t *testing.T, lines []string) string {
	t.Helper()
	dir, all := t.TempDir(), strings.Join(lines, "\n")
	switch {
	case strings.HasPrefix(all, "go get "): // no release exists yet: see docs/guides/checkout.md
		for i, line := range lines {
			lines[i] = moduleOfOurs.ReplaceAllString(line, "$0@v0.0.0")
		}
		runs(t, m.command(t, dir, `go mod init example.org/reader
			(cd `+m.clone+` && find * -name go.mod -printf '%h\n') | while read -r folder; do
				echo "-replace=`+ours+`$folder=`+m.clone+`/$folder"
			done | xargs go mod edit`))
	case !strings.HasPrefix(all, "git clone ") && (strings.Contains(all, "./") || strings.Contains(all, "-C ")):
		return m.clone
	}
	return dir
}

// serve starts a command and waits until it prints a text in quotes, or listens on a
// port. Its processes end with stop.
func (m *machine) serve(t *testing.T, dir, command, until string, out *buffer) (stop func()) {
	t.Helper()
	cmd := m.command(t, dir, command)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	hasEnded := func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
	stop = func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) // fails if it ended
		if !poll(t, hasEnded) {
			t.Errorf("%s does not end after an interrupt", command)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	text, quoted := strconv.Unquote(until)
	ready := func() bool {
		return quoted == nil && strings.Contains(out.String(), text) || quoted != nil && listens(t, "127.0.0.1:"+m.port)
	}
	if !poll(t, func() bool { return ready() || hasEnded() }) || hasEnded() {
		stop()
		t.Fatalf("%s does not serve:\n%s", command, out.String())
	}
	return stop
}

// buffer takes the output of several processes.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
