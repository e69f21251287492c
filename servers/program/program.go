// Package program runs a program in its tests as its user does: as a process, which can
// be killed.
package program

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/servers"
)

// asProgram makes a test binary the program that it tests, which saves building one.
const asProgram = "REPRISE_TEST_PROGRAM"

// Main is the TestMain of a program. In the processes that the tests start, it runs the
// program.
func Main(m *testing.M, main func()) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	if err := os.Setenv(asProgram, "yes"); err != nil {
		panic(err)
	}
	os.Exit(servers.Main{M: m}.Run())
}

// Process is a running program.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu   sync.Mutex
	said bytes.Buffer // on both streams
}

// Start starts the program, which is killed at the end of the test.
func Start(tb testing.TB, args ...string) *Process {
	tb.Helper()
	return StartFile(tb, os.Args[0], args...)
}

// StartFile is Start for the program in a file.
func StartFile(tb testing.TB, file string, args ...string) *Process {
	tb.Helper()
	p := &Process{cmd: exec.Command(file, args...), ended: make(chan struct{})} //nolint:gosec,noctx // of the test, which kills it
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // its state tells
	}()
	tb.Cleanup(p.Kill)
	return p
}

// Kill ends the program by SIGKILL, and returns when it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails if it has ended
	<-p.ended
}

// Signal sends the program a signal.
func (p *Process) Signal(tb testing.TB, s os.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		tb.Error(err)
	}
}

// Interrupt ends the program as Ctrl-C does. It must exit with 0 within a minute.
func (p *Process) Interrupt(tb testing.TB) {
	tb.Helper()
	p.Signal(tb, os.Interrupt)
	p.End(tb)
}

// End waits for the end of the program, which must exit with 0 within a minute, and
// returns its output.
func (p *Process) End(tb testing.TB) string {
	tb.Helper()
	if code := p.Exit(tb); code != 0 {
		tb.Errorf("it ended with %d: %s", code, p.Output())
	}
	return p.Output()
}

// Exit waits for the end of the program, for a minute at most, and returns its exit code.
func (p *Process) Exit(tb testing.TB) int {
	tb.Helper()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		tb.Errorf("it does not end: %s", p.Output())
		p.Kill()
	}
	return p.cmd.ProcessState.ExitCode()
}

// Await waits until the program's output matches the pattern, for a minute at most, and
// returns the last submatch.
func (p *Process) Await(tb testing.TB, pattern string) string {
	tb.Helper()
	search, deadline := regexp.MustCompile(pattern), time.After(time.Minute)
	for {
		if found := search.FindStringSubmatch(p.Output()); found != nil {
			return found[len(found)-1]
		}
		select {
		case <-p.ended:
			tb.Fatalf("it ended without %q: %s", pattern, p.Output())
		case <-deadline:
			tb.Fatalf("no %q in a minute: %s", pattern, p.Output())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Write implements [io.Writer].
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.Write(b)
}

// Output returns the output so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}
