// Package judged judges the idempotency packages of npm with reprise judge, and prints
// the reports. It needs the network, and no check runs it: lab/program judges Reprise on
// each adapter, and Fiber's own middlewares. docs/engineering/judge-scores.md has the
// results of a day.
//
//	make judge/peers
package judged

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/servers"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "3") // a run of the judge waits most of the time
	flag.Parse()
	servers.Main{M: m}.Run()
}

// root is the folder of go.work.
var root = filepath.Join("..", "..", "..")

func TestScores(t *testing.T) {
	bin, redis := t.TempDir(), servers.Redis.Shared(t).Addr()
	judge, node := filepath.Join(bin, "reprise"), filepath.Join(bin, "node") // a copy, so that the tree stays as it is
	run(t, filepath.Join(root, "cmd", "reprise"), "go", "build", "-o", judge, ".")
	if err := os.CopyFS(node, os.DirFS(filepath.Join(root, "tools", "peers", "node"))); err != nil {
		t.Fatal(err)
	}
	run(t, node, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	for _, peer := range []struct{ args, profiles []string }{
		{[]string{"nestjs-memory"}, []string{"draft-07"}},
		{[]string{"nestjs-redis", redis}, []string{"draft-07"}},
		{[]string{"express-idempotency"}, []string{"draft-07", "stripe"}},
		{[]string{"express-idempotency-redis", redis}, []string{"draft-07", "stripe"}},
		{[]string{"idempotency-backend"}, []string{"draft-07"}},
	} {
		t.Run(peer.args[0], func(t *testing.T) {
			t.Parallel()
			base := start(t, append([]string{"node", filepath.Join(node, "judged.js")}, peer.args...))
			for _, profile := range peer.profiles {
				report, err := exec.CommandContext(t.Context(), judge, "judge", base+"/judged", "--profile", profile,
					"--scope", "X-Test-Tenant: one", "--scope", "X-Test-Tenant: two", "--executions", base+"/executions").CombinedOutput()
				var exit *exec.ExitError
				if t.Logf("%s: %v\n%s", profile, err, report); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: a must is not met
					t.Error("it was not judged")
				}
			}
		})
	}
}

// run runs a command outside of the workspace.
func run(t *testing.T, dir string, command ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(command, " "), err, out)
	}
}

// start starts a program that prints where it listens, and returns its URL. The program
// is killed with the test.
func start(t *testing.T, command []string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = t.TempDir() // some keep their records in the working directory
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines, ended := bufio.NewScanner(said), make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = cmd.Wait() // it was killed
	})
	for lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			go func() {
				defer close(ended)
				for lines.Scan() { // what it says is not needed, but has to be read
				}
			}()
			return "http://" + addr
		}
	}
	close(ended)
	t.Fatal("it does not listen")
	return ""
}
