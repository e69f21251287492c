//go:build unix

package commands_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-go/reprise/servers"
	"github.com/reprise-go/reprise/tools/internal/tree"
)

// machine has the clone, and other addresses than those that the pages name.
type machine struct {
	clone   string
	env     []string
	places  []string    // of the pages, and those here
	port    string      // of the examples
	serving *sync.Mutex // one program at a time listens on it
}

// needs start the servers that a block needs, by their names, and return the addresses of
// the pages and those here. They skip the test if this machine does not have the server.
var needs = map[string]func(*testing.T) []string{
	"redis": func(t *testing.T) []string {
		t.Helper()
		addr := servers.Redis.Start(t, "appendonly=yes").Addr()
		return []string{"localhost:6379", addr, "127.0.0.1:6379", addr}
	},
	"postgres": func(t *testing.T) []string {
		t.Helper()
		url := "'" + servers.StartPostgres(t, "fsync=on").URL() + "'"
		return []string{"postgres://localhost/postgres", url, "postgres://127.0.0.1/postgres", url}
	},
	"mariadb": func(t *testing.T) []string {
		t.Helper()
		return []string{"root@tcp(127.0.0.1:3306)/test", "root@tcp(" + servers.SharedMariaDB(t).Addr() + ")/mysql"}
	},
	"node": func(t *testing.T) []string { // a service that listens on another port
		t.Helper()
		if _, err := exec.LookPath("node"); err != nil {
			if servers.Required(t, "npm") { // which comes with it
				t.Fatal(err)
			}
			t.Skip("no node")
		}
		port := portOf(t, servers.FreeAddr(t))
		return []string{"listen(3000", "listen(" + port, "127.0.0.1:3000", "127.0.0.1:" + port}
	},
}

func TestMain(m *testing.M) { os.Exit(servers.Main{M: m}.Run()) }

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
	m := &machine{clone: clone(t), env: tree.GoOnly(t, "curl"), port: portOf(t, servers.FreeAddr(t)), serving: new(sync.Mutex)}
	bin, _ := strings.CutPrefix(m.env[0], "PATH=")
	home, _ := strings.CutPrefix(m.env[1], "HOME=")
	for _, client := range []string{"redis-server", "psql", "node"} {
		if _, err := exec.LookPath(client); err == nil {
			tree.Link(t, bin, client)
		}
	}
	if client, err := exec.LookPath("redis-cli"); err == nil { // to another port than its default one
		tree.Write(t, bin, "redis-cli", fmt.Sprintf("#!/bin/sh\nexec %s -p ${REDIS##*:} \"$@\"\n", client))
		servers.Must(t, os.Chmod(filepath.Join(bin, "redis-cli"), 0o755))
	}
	here, nats := "127.0.0.1:"+m.port, portOf(t, servers.FreeAddr(t))
	m.places = []string{
		"localhost:8080", here, "127.0.0.1:8080", here,
		"localhost:4222", "127.0.0.1:" + nats, "127.0.0.1:4222", "127.0.0.1:" + nats, "-p 4222", "-p " + nats,
	}
	sources, _ := tree.Run(t, m.clone, nil, "git", "ls-files", "examples/*.go")
	for file := range strings.FieldsSeq(sources) {
		text, err := os.ReadFile(filepath.Join(m.clone, file))
		servers.Must(t, err)
		tree.Write(t, m.clone, file, strings.NewReplacer("localhost:8080", here, "127.0.0.1:8080", here).Replace(string(text)))
	}
	m.env[0] += ":" + filepath.Join(home, "go", "bin")
	m.env = append(m.env, "TMPDIR="+t.TempDir(), "GOFLAGS=-trimpath", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+m.clone+".insteadOf", "GIT_CONFIG_VALUE_0="+repository)
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
	servers.Must(t, err)
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
			m := *m
			if b.needs != "" {
				at := needs[b.needs](t)
				m.places = slices.Concat(m.places, at)
				m.env = append(slices.Clone(m.env), strings.ToUpper(b.needs)+"="+at[1])
			}
			m.run(t, b, lines)
		})
	}
}

// run runs the commands of a block.
func (m *machine) run(t *testing.T, b block, lines []string) {
	t.Helper()
	for i := range lines {
		lines[i] = strings.NewReplacer(m.places...).Replace(lines[i])
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
	servers.Must(t, cmd.Start())
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

func runs(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

func listens(t *testing.T, addr string) bool {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// poll asks for up to a minute, and returns the last answer.
func poll(t *testing.T, ready func() bool) bool {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ready(); {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			return false
		}
		if time.Now().After(end) {
			return ready()
		}
	}
	return true
}

func portOf(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	servers.Must(t, err)
	return port
}
