// Package program runs an example as its reader does: built, as a separate process.
package program

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"
)

// WithoutServers is the environment of a machine on which no server is installed.
func WithoutServers() []string { return append(os.Environ(), "PATH=") }

// Main runs the tests of a package and removes the program that [Build] made for them.
type Main struct{ *testing.M }

// Run runs the tests and returns the exit code.
func (m Main) Run() int {
	dir, err := os.MkdirTemp("", "reprise-example-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	built = filepath.Join(dir, "program")
	code := m.M.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

var built string // the path of the program

var build = sync.OnceValue(func() error {
	return BuildTo(built)
})

// BuildTo compiles the program in the folder of the tests. It has the race detector if
// they have it, so that they share compiled packages.
func BuildTo(path string) error {
	args := []string{"build", "-o", path}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, ".")...).CombinedOutput() //nolint:gosec,noctx // the path is our own, and the tests share the program
	if err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	return nil
}

// Build compiles the program in the folder of the tests, once, and returns its path. The
// tests need a TestMain that calls [Main.Run].
func Build(t *testing.T) string {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return built
}

// Run runs a program to its end. It returns its output, of both streams, and its exit
// status.
func Run(t *testing.T, path string, env []string, args ...string) (said string, status int) {
	t.Helper()
	process := exec.CommandContext(t.Context(), path, args...) //nolint:gosec // the program of the test
	process.Env = env
	out, err := process.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), process.ProcessState.ExitCode()
}

// Process is a program that serves.
type Process struct {
	*testing.T

	cmd    *exec.Cmd
	ended  chan struct{}
	killed bool

	mu   sync.Mutex
	said bytes.Buffer // on both streams
}

// Start starts a program. At the end of the test it is interrupted, and must exit with 0.
func Start(t *testing.T, path string, env []string, args ...string) *Process {
	t.Helper()
	p := &Process{T: t, cmd: exec.Command(path, args...), ended: make(chan struct{})} //nolint:gosec,noctx // the program of the test, which ends it
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var result error
	go func() {
		defer close(p.ended)
		result = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		if p.killed {
			return
		}
		err := p.cmd.Process.Signal(os.Interrupt)
		select {
		case <-p.ended:
		case <-time.After(time.Minute):
			err = errors.Join(errors.New("it does not end"), p.cmd.Process.Kill())
			<-p.ended
		}
		if err := errors.Join(err, result); err != nil {
			t.Errorf("%v: %s", err, &p.said)
		}
	})
	return p
}

// Kill ends the program by SIGKILL, and returns when it has ended.
func (p *Process) Kill() {
	p.Helper()
	p.killed = true
	if err := p.cmd.Process.Kill(); err != nil {
		p.Error(err)
	}
	<-p.ended
}

// Write implements [io.Writer].
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.Write(b)
}

// Await waits until the program's output matches the pattern, and returns the last
// submatch.
func (p *Process) Await(pattern string) string {
	p.Helper()
	search := regexp.MustCompile(pattern)
	deadline := time.After(time.Minute)
	for {
		p.mu.Lock()
		said := p.said.String()
		p.mu.Unlock()
		if found := search.FindStringSubmatch(said); found != nil {
			return found[len(found)-1]
		}
		select {
		case <-p.ended:
			p.Fatalf("it ended without %q: %s", pattern, said)
		case <-deadline:
			p.Fatalf("no %q in a minute: %s", pattern, said)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
