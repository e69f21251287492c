// Package program tests the operator's program (cmd/reprise) as a process: built as a
// user builds it, on real servers, and in a pseudo-terminal.
package program

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(judgedStore) != "" {
		serveJudged()
	}
	_ = flag.Set("test.parallel", "8") // they wait for programs and servers; one on the command line has precedence
	dir, err := os.MkdirTemp("", "reprise-program-")
	if err == nil {
		err = os.Setenv("GORACE", "atexit_sleep_ms=0") // else each program sleeps for a second when it ends
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs = dir
	labtest.Main(m, func() { _ = os.RemoveAll(dir) })
}

// programs is the folder of the built program.
var programs string

// install builds the program once, with the race detector if these tests have it.
var install = sync.OnceValue(func() error {
	args := []string{"install", "./cmd/reprise"}
	if labtest.RaceEnabled {
		args = []string{"install", "-race", "./cmd/reprise"}
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), "GOBIN="+programs)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
})

// program returns the path of the program.
func program(tb testing.TB) string {
	tb.Helper()
	if err := install(); err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(programs, "reprise")
}

// runProgram runs the program and returns its output.
func runProgram(tb testing.TB, env []string, code int, args ...string) string {
	tb.Helper()
	path := program(tb) // which may take long to build
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		tb.Fatalf("exit code %d, want %d: %v\n%s", got, code, err, out)
	}
	return string(out)
}

// listens reports whether a server accepts connections at an address.
func listens(addr string) bool {
	conn, err := net.Dial("tcp", addr) //nolint:noctx // on this machine
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}
