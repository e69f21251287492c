package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-go/reprise/servers"
)

// asServer, in the environment, makes the test binary the program itself, so that the
// tests see it as a process.
const asServer = "REPRISE_TESTSERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		go func() { // the test keeps the other end: without it this process would not be stopped
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(3)
		}()
		main()
	}
	servers.Main{M: m}.Run()
}

// patience bounds how long a test waits for anything.
const patience = time.Minute

// process is a testserver that runs.
type process struct {
	addr   string // that it listens on
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has
	stdout *lockedBuffer
	stderr *lockedBuffer
}

// start starts a testserver, and waits until it listens. It is killed when the test ends.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return launch(t, args...).listening(t)
}

// listening waits until the process listens.
func (p *process) listening(t *testing.T) *process {
	t.Helper()
	eventually(t, fmt.Sprintf("%v listens", p.cmd.Args), func() bool {
		select {
		case <-p.exited:
			t.Fatalf("%v ended\n%s", p.cmd.Args, p.stderr)
		default:
		}
		return strings.HasSuffix(p.stdout.String(), "\n")
	})
	addr, ok := strings.CutPrefix(p.stdout.String(), "listening on ")
	if !ok {
		t.Fatalf("%v printed %q", p.cmd.Args, p.stdout)
	}
	p.addr = strings.TrimSpace(addr)
	return p
}

// launch starts a testserver.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{exited: make(chan struct{}), stdout: new(lockedBuffer), stderr: new(lockedBuffer)}
	p.cmd = exec.CommandContext(t.Context(), self, args...)
	p.cmd.Env = append(os.Environ(), asServer+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	if _, err := p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // its state tells
		close(p.exited)
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process without a chance to drain.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.exited
}

// terminate asks the process to drain.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// exit waits until the process has ended, and returns its exit code.
func (p *process) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatalf("still running\n%s", p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

// logged reports whether a line with that message is in the log, all of which has to be
// JSON.
func (p *process) logged(t *testing.T, msg string) bool {
	t.Helper()
	text := p.stderr.String()
	found := false
	for line := range strings.Lines(text) {
		var entry struct{ Msg string }
		if strings.HasSuffix(line, "\n") { // else it is being written
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatalf("log line %q: %v", line, err)
			}
		}
		found = found || entry.Msg == msg
	}
	return found
}

// eventually polls until done reports true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-tick.C
	}
}

// lockedBuffer collects the output of a process.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}
