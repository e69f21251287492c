//go:build unix

package commands_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
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

	"github.com/reprise-go/reprise/tools/internal/servers"
)

type startFunc = func(context.Context) (*servers.Server, error)

// missing matches the line with which a program of the examples says that it needs a
// server, and how to get it. The operator's program needs an existing store.
var missing = map[string]*regexp.Regexp{
	"redis":    regexp.MustCompile(`(?m)Redis.*apt-get install redis-server|^✗ unreachable: .*redis: |redis-cli: .*not found`),
	"postgres": regexp.MustCompile(`PostgreSQL.*apt-get install postgresql`),
	"mariadb":  regexp.MustCompile(`MariaDB.*apt-get install mariadb-server`),
}

// moduleOfOurs matches the arguments of go get.
var moduleOfOurs = regexp.MustCompile(regexp.QuoteMeta(ours) + `\S+`)

// run runs a block, and reports deviations from its directive.
func (w *world) run(t *testing.T, b block) {
	t.Helper()
	for _, name := range b.needs {
		if w.has[name] {
			continue
		}
		out, err := w.try(t, b)
		if err == nil || !missing[name].MatchString(out) {
			t.Errorf("without %s: %v, want a failure with a line that matches %v:\n%s", name, err, missing[name], out)
		}
		return
	}
	out, err := w.try(t, b)
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// try returns the output of a block's commands.
func (w *world) try(t *testing.T, b block) (output string, err error) {
	t.Helper()
	lines, _ := b.commands()
	for i := range lines {
		lines[i] = w.place.Replace(lines[i])
	}
	dir := w.folder(t, lines)
	var out buffer
	if len(b.until) > 0 {
		w.serving.Lock()
		defer w.serving.Unlock()
	}
	var stops []func()
	defer func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}()
	for i, until := range b.until {
		stop, err := w.serve(t, dir, strings.TrimSuffix(uncommented(lines[i]), "&"), until, &out)
		stops = append(stops, stop)
		if err != nil {
			return out.String(), err
		}
	}
	cmd := w.command(t, dir, strings.Join(lines[len(b.until):], "\n"))
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), err
	}
	// A served program may print something after its client has the answer.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, want := range b.prints {
		if err := poll(ctx, func() bool { return strings.Contains(out.String(), want) }); err != nil {
			return out.String(), fmt.Errorf("%q is not printed", want)
		}
	}
	return out.String(), nil
}

// poll waits until ready, or until ctx ends, whose cause it returns.
func poll(ctx context.Context, ready func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// folder returns where commands run: in the clone, or elsewhere if they do not name
// anything of it.
func (w *world) folder(t *testing.T, lines []string) string {
	t.Helper()
	switch {
	case len(lines) == 0:
		return w.clone
	case strings.HasPrefix(lines[0], "go get "):
		dir := w.newModule(t)
		for i, line := range lines { // no release exists yet: see docs/guides/checkout.md
			lines[i] = moduleOfOurs.ReplaceAllString(line, "$0@v0.0.0")
		}
		return dir
	case strings.Contains(strings.Join(lines, "\n"), "./"), strings.Contains(strings.Join(lines, "\n"), "-C "):
		if !strings.HasPrefix(lines[0], "git clone ") {
			return w.clone
		}
	}
	return t.TempDir()
}

// newModule returns the folder of a module that replaces those of the project by the
// clone's.
func (w *world) newModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	edit := []string{"mod", "edit"}
	for _, pattern := range []string{"*", "*/*", "*/*/*"} {
		modules, err := filepath.Glob(filepath.Join(w.clone, pattern, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range modules {
			folder, err := filepath.Rel(w.clone, filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			edit = append(edit, "-replace="+ours+filepath.ToSlash(folder)+"="+filepath.Dir(file))
		}
	}
	for _, args := range [][]string{{"mod", "init", "example.org/reader"}, edit} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, w.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return dir
}

// serve starts a command and waits until it prints a text in quotes, or listens on a
// port. Its processes end with stop.
func (w *world) serve(t *testing.T, dir, command, until string, out *buffer) (stop func(), err error) {
	t.Helper()
	cmd := w.command(t, dir, command)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	stop = func() {}
	if err := cmd.Start(); err != nil {
		return stop, err
	}
	running, end := context.WithCancelCause(t.Context())
	go func() { end(fmt.Errorf("%s ended: %w", command, cmp.Or(cmd.Wait(), io.EOF))) }()
	stop = func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) // fails if it ended
		select {
		case <-running.Done():
		case <-time.After(30 * time.Second):
			t.Errorf("%s does not end after an interrupt", command)
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
	ready := func() bool {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(running, "tcp", "127.0.0.1:"+w.port)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	if text, err := strconv.Unquote(until); err == nil {
		ready = func() bool { return strings.Contains(out.String(), text) }
	} else if until != "8080" {
		return stop, fmt.Errorf("background until %s: want a text in quotes, or 8080", until)
	}
	return stop, poll(running, ready)
}

// uncommented returns a command without the comment after it.
func uncommented(line string) string {
	command, _, _ := strings.Cut(line, " #")
	return strings.TrimSpace(command)
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
