package peers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/tools/peers/usage"
)

// The names of servers: the framework alone, with its own middleware, and with Reprise.
const (
	bare   = "bare"
	least  = "floor"
	own    = "own"
	ours   = "reprise"
	alone  = "reprise-alone" // and without combining
	bareV3 = "v3-bare"
	ownV3  = "v3-own"
)

// build builds the program in a folder.
func build(tb testing.TB, folder string) (program string) {
	tb.Helper()
	program = filepath.Join(tb.TempDir(), filepath.Base(folder))
	cmd := exec.CommandContext(tb.Context(), "go", "build", "-o", program, ".")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build %s: %v\n%s", folder, err, out)
	}
	return program
}

// server is a process that serves, with a load connected to it.
type server struct {
	name string
	addr string
	load *load
}

// start starts a program, and connects a load to it. Both end with the test.
func start(tb testing.TB, name, program string, args ...string) *server {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		tb.Fatalf("start %s: %v", name, err)
	}
	tb.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatalf("%s did not say where it listens: %v", name, err)
	}
	s := &server{name: name, addr: strings.TrimSpace(addr)}
	if s.load, err = dial(s.addr, connections); err != nil {
		tb.Fatalf("connect to %s: %v", name, err)
	}
	tb.Cleanup(s.load.close)
	return s
}

var client = new(http.Client)

// usage asks the server what it has used so far.
func (s *server) usage(tb testing.TB) usage.Report {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, "http://"+s.addr+usage.Path, nil)
	if err != nil {
		tb.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	report, err := usage.Parse(string(text))
	if err != nil {
		tb.Fatal(fmt.Errorf("usage of %s: %w", s.name, err))
	}
	return report
}

// isBare reports whether the server has no middleware.
func (s *server) isBare() bool { return strings.HasSuffix(s.name, bare) }
