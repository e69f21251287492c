//go:build unix

package targets_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

func TestDemoNeedsNoMoreThanGo(t *testing.T) {
	t.Parallel()
	dir := tree.Copy(t)
	out, ok := tree.Run(t, dir, nil, "env", goOnly(t, "make", "demo")...)
	if !ok {
		t.Errorf("make demo failed:\n%s", out)
	}
	for _, want := range []string{
		"made 5 orders.\n", "1. A process was killed while it ran an order.\n", "\nThe order was not run a second time.\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in the transcript:\n%s", want, out)
		}
	}
	if lastLine(out) != "Both halves are as they should be." {
		t.Errorf("the last line is %q", lastLine(out))
	}
}

func TestDemoSaysWhichHalfFailedAndWhy(t *testing.T) {
	t.Parallel()
	dir := tree.Copy(t)
	for _, broken := range []struct{ path, from, to, half, why string }{
		{"examples/operators/demo.go", "http.StatusConflict", "http.StatusTeapot", "second", "\noperators: want 409 outcome-unknown, got "},
		{"examples/quickstart/demo.go", "d.bank.total() == 1", "d.bank.total() == 2", "first", "\nquickstart: step 1, "},
	} {
		program, err := os.ReadFile(filepath.Join(dir, broken.path))
		if err != nil {
			t.Fatal(err)
		}
		tree.Write(t, dir, broken.path, strings.Replace(string(program), broken.from, broken.to, 1))
		out := fails(t, dir, "\ndemo: the "+broken.half+" half failed, and the lines above say why\n", "demo")
		if !strings.Contains(out, broken.why) {
			t.Errorf("no %q:\n%s", broken.why, out)
		}
	}
}

// The port is taken, and there is no browser to open.
func TestConsoleNeedsNoMoreThanGo(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cmd := exec.CommandContext(t.Context(), "env", goOnly(t, "make", "console", "ADDR="+taken.Addr().String())...)
	cmd.Dir, cmd.Stderr = tree.Copy(t), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(io.TeeReader(out, t.Output()))
	await := func(pattern string) string {
		t.Helper()
		for search := regexp.MustCompile(pattern); lines.Scan(); {
			if found := search.FindStringSubmatch(lines.Text()); found != nil {
				return found[1]
			}
		}
		t.Fatalf("make console ended without %q, %v", pattern, lines.Err())
		return ""
	}
	port := await(`^Port [0-9]+ is taken: ([0-9]+), the next free one, is used instead\.$`)
	console := await(`^The console: (\S+)$`)
	if again := await(`^No browser was opened \(.*not found.*\)\. The console: (\S+)$`); console != again || console != "http://127.0.0.1:"+port+"/idempotency/" {
		t.Errorf("the console is %s and %s, not on port %s", console, again, port)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, console, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := new(http.Client).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if page, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(page, []byte("unreadable")) {
		t.Errorf("%s, %v: %s", answer.Status, err, page)
	}

	// As after a Ctrl-C in a terminal: everything ends, and with the last process the pipe.
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	_ = cmd.Wait() // make reports the signal
	if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", "127.0.0.1:"+port); err == nil {
		_ = conn.Close()
		t.Error("the console still listens")
	}
}

// goOnly returns the arguments with which env runs a command on a machine that has only
// Go, make, git and a C compiler.
func goOnly(t *testing.T, command ...string) []string {
	t.Helper()
	return slices.Concat([]string{"-i"}, tree.GoOnly(t), command)
}
