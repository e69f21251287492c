package program

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

// terminal is the program in a pseudo-terminal, with its screen.
type terminal struct {
	tb   testing.TB
	cmd  *exec.Cmd
	file *os.File
	end  chan struct{} // closed when the program's output has ended

	mu     sync.Mutex
	screen vt10x.Terminal
	raw    bytes.Buffer // everything that the program wrote
}

// start runs the program in a terminal of 100 columns and 30 lines.
func (f *fixture) start(tb testing.TB, args ...string) *terminal {
	tb.Helper()
	return startTerminal(tb, append(f.env, "NO_COLOR="), args...)
}

func startTerminal(tb testing.TB, env []string, args ...string) *terminal {
	tb.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), program(tb), args...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "CI=")
	cmd.Env = append(cmd.Env, env...)
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30})
	if err != nil {
		tb.Fatal(err)
	}
	t := &terminal{tb: tb, cmd: cmd, file: file, end: make(chan struct{}), screen: vt10x.New(vt10x.WithSize(100, 30))}
	go func() {
		defer close(t.end)
		b := make([]byte, 4096)
		for {
			n, err := file.Read(b)
			t.mu.Lock()
			t.raw.Write(b[:n])
			_, _ = t.screen.Write(b[:n])
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

// view returns the text on the screen, without the spaces at the ends of its lines.
func (t *terminal) view() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range strings.Lines(t.screen.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// written returns everything that the program wrote so far.
func (t *terminal) written() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.raw.String()
}

// await waits until all texts are on the screen.
func (t *terminal) await(texts ...string) {
	t.tb.Helper()
	missing := ""
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // polls a screen
		missing = ""
		view := t.view()
		for _, text := range texts {
			if !strings.Contains(view, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
	}
	t.tb.Fatalf("the screen does not show %q:\n%s", missing, t.view())
}

// wrote fails the test unless the program wrote all texts, wherever they are by now.
func (t *terminal) wrote(texts ...string) {
	t.tb.Helper()
	for _, text := range texts {
		if !strings.Contains(t.written(), text) {
			t.tb.Errorf("the program did not write %q:\n%s", text, t.view())
		}
	}
}

// typeIn types text.
func (t *terminal) typeIn(text string) {
	t.tb.Helper()
	if _, err := t.file.WriteString(text); err != nil {
		t.tb.Fatal(err)
	}
}

// exits waits for the end of the program and compares its exit code.
func (t *terminal) exits(code int) {
	t.tb.Helper()
	done := make(chan error, 1)
	go func() { done <- t.cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-time.After(20 * time.Second):
		t.tb.Fatalf("the program does not end:\n%s", t.view())
	}
	<-t.end
	got := 0
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		got = failed.ExitCode()
	} else if err != nil {
		t.tb.Fatal(err)
	}
	if got != code {
		t.tb.Fatalf("exit code %d, want %d:\n%s", got, code, t.view())
	}
}

// The keys.
const (
	keyEnter = "\r"
	keyCtrlC = "\x03"
)
