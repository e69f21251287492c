package servers_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/servers"
)

// TestVictimInRole starts a server, says that it is ready, and waits to be killed.
func TestVictimInRole(t *testing.T) {
	roleOnly(t, "victim")
	_ = startWanted(t)
	println("ready")
	select {}
}

// startVictim runs a process that started the wanted server and has its files in the
// directory temp. It skips the test where the server's program is missing.
func startVictim(t *testing.T, want, temp string) *exec.Cmd {
	t.Helper()
	cmd := again(t, "victim", "TestVictimInRole", wantEnv+"="+want, "TMPDIR="+temp)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if lines.Text() == "ready" {
			return cmd
		}
	}
	err = cmd.Wait()
	if err == nil && strings.Contains(stdout.String(), "--- SKIP") {
		t.Skipf("%s is missing", want)
	}
	t.Fatalf("the victim ended with %v:\n%s", err, &stdout)
	return nil
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// openTemp returns a temporary directory that servers of other users may enter.
func openTemp(t *testing.T) string {
	t.Helper()
	temp, err := os.MkdirTemp("", "reprise-test-") //nolint:usetesting // t.TempDir is in a directory that is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	if err := os.Chmod(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	return temp
}

// processesIn returns how many processes work in a directory below temp: each server
// does.
func processesIn(t *testing.T, temp string) int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, link := range links {
		if dir, err := os.Readlink(link); err == nil && strings.HasPrefix(dir, temp) {
			n++
		}
	}
	return n
}

// filesIn returns the files in the directory.
func filesIn(t *testing.T, temp string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(temp, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// makeOld makes the files look as if they had been there for long.
func makeOld(t *testing.T, files []string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	for _, file := range files {
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
	}
}

// runInTurn runs a process that starts the wanted server and ends in order.
func runInTurn(t *testing.T, want, temp string) {
	t.Helper()
	if out, err := again(t, "resolver", "TestResolveInRole", wantEnv+"="+want, "TMPDIR="+temp).CombinedOutput(); err != nil {
		t.Fatalf("ended with %v:\n%s", err, out)
	}
}

func TestKilledProcessesLeaveNoServersOrFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other kernels do not kill the servers of a killed process")
	}
	tests := []struct{ victim, next string }{
		{"redis", "redis"},
		{"shared redis", "shared redis"},
		{"valkey", "shared valkey"},
		{"postgres set", "shared postgres"},
	}
	for _, tt := range tests {
		t.Run(tt.victim, func(t *testing.T) {
			t.Parallel()
			temp := openTemp(t)
			victim := startVictim(t, tt.victim, temp)
			if processesIn(t, temp) == 0 {
				t.Fatal("no server runs")
			}
			makeOld(t, filesIn(t, temp))
			kill(t, victim)
			eventually(t, patient, "no server runs", func() bool { return processesIn(t, temp) == 0 })
			if len(filesIn(t, temp)) == 0 {
				t.Fatal("the killed process left no files to remove")
			}

			runInTurn(t, tt.next, temp)
			if n := processesIn(t, temp); n != 0 {
				t.Errorf("%d servers of the next process run on", n)
			}
			if left := filesIn(t, temp); len(left) != 0 {
				t.Errorf("files left: %v", left)
			}
		})
	}
}

func TestFilesOfALivingProcessStay(t *testing.T) {
	t.Parallel()
	temp := openTemp(t)
	living := startVictim(t, "redis", temp)
	before := filesIn(t, temp)
	makeOld(t, before)
	runInTurn(t, "redis", temp)
	if after := filesIn(t, temp); len(before) != 1 || !slices.Equal(after, before) {
		t.Errorf("files %v, before %v", after, before)
	}
	kill(t, living)
}

func TestServersEndWithTheirTest(t *testing.T) {
	t.Parallel()
	var addrs []string
	keep := func(addr string) {
		if !listens(t, addr) {
			t.Errorf("nobody listens on %s", addr)
		}
		addrs = append(addrs, addr)
	}
	t.Run("redis", func(t *testing.T) { keep(servers.Redis.Start(t).Addr()) })
	t.Run("valkey", func(t *testing.T) { keep(servers.Valkey.Start(t).Addr()) })
	t.Run("postgres", func(t *testing.T) {
		s := servers.StartPostgres(t)
		keep(s.Addr())
		keep(servers.StartProxy(t, s.Addr()).Addr())
		t.Run("pgbouncer", func(t *testing.T) { keep(s.StartPgBouncer(t).Addr()) })
	})
	for _, addr := range addrs {
		if listens(t, addr) {
			t.Errorf("after the test somebody listens on %s", addr)
		}
	}
}
