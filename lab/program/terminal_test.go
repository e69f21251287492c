package program

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// terminal is the program in a pseudo-terminal.
type terminal struct {
	tb   testing.TB
	cmd  *exec.Cmd
	file *os.File
	end  chan struct{} // closed when the program's output has ended

	mu  sync.Mutex
	raw bytes.Buffer // everything that the program wrote
}

// startTerminal runs the program in a terminal of 100 columns and 30 lines.
func startTerminal(tb testing.TB, env []string, args ...string) *terminal {
	tb.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), program(tb), args...)
	cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "CI=", "NO_COLOR="), env...)
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30})
	labtest.Must(tb, err)
	t := &terminal{tb: tb, cmd: cmd, file: file, end: make(chan struct{})}
	go func() {
		defer close(t.end)
		b := make([]byte, 4096)
		for {
			n, err := file.Read(b)
			t.mu.Lock()
			t.raw.Write(b[:n])
			t.mu.Unlock()
			if err != nil {
				return // the program has ended
			}
		}
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-t.end
		_ = file.Close()
	})
	return t
}

// written returns everything that the program wrote so far.
func (t *terminal) written() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.raw.String()
}

// await waits until the program has written all texts.
func (t *terminal) await(texts ...string) {
	t.tb.Helper()
	for _, text := range texts {
		labtest.Eventually(t.tb, text, func() bool { return strings.Contains(t.written(), text) })
	}
}

// wrote fails the test unless the program wrote all texts.
func (t *terminal) wrote(texts ...string) {
	t.tb.Helper()
	for _, text := range texts {
		if !strings.Contains(t.written(), text) {
			t.tb.Errorf("the program did not write %q:\n%s", text, t.written())
		}
	}
}

// typeIn types text.
func (t *terminal) typeIn(text string) {
	t.tb.Helper()
	_, err := t.file.WriteString(text)
	labtest.Must(t.tb, err)
}

// exits waits for the end of the program and compares its exit code.
func (t *terminal) exits(code int) {
	t.tb.Helper()
	<-t.end
	_ = t.cmd.Wait() // the exit code says more
	if got := t.cmd.ProcessState.ExitCode(); got != code {
		t.tb.Fatalf("exit code %d, want %d:\n%s", got, code, t.written())
	}
}

// The keys.
const (
	keyEnter = "\r"
	keyCtrlC = "\x03"
)
