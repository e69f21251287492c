// Package judged judges Reprise and other idempotency middlewares with reprise judge, and
// prints its reports. It is a test for the servers of the lab alone, and in no check.
// docs/engineering/judge-scores.md has the results of a day.
//
//	make judge/peers
package judged

import (
	"bufio"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// service is a service to judge, by each of its profiles.
type service struct {
	name          string
	command       []string
	profiles      []string
	path, counter string // of the endpoint, and of its runs
	ours          bool   // fails the test with a must that it does not meet
}

func TestScores(t *testing.T) {
	bin, redis := t.TempDir(), servers.Redis.Shared(t).Addr()
	build := func(module, pkg string) string {
		program := filepath.Join(bin, strings.ReplaceAll(module+"/"+pkg, "/", "-"))
		run(t, filepath.Join(root, module), "go", "build", "-o", program, "./"+pkg)
		return program
	}
	judge := build("cmd/reprise", ".")
	var all []service
	for _, adapter := range []string{"nethttp", "gin", "echo", "echo5", "fiber", "fiber3"} {
		command := []string{build("lab/"+adapter, "testserver"), "-store", "memory"}
		all = append(all, service{"Reprise, " + adapter, command, []string{"draft-07", "reprise"}, "/t/op", "/executions/op", true})
	}
	atMostOnce := append(slices.Clone(all[0].command), "-preset", "at-most-once")
	all = append(all,
		service{"Reprise, at most once", atMostOnce, []string{"stripe"}, "/t/op", "/executions/op", true},
		service{"Fiber v2's own", []string{build("tools/peers", "fiberv2/own")}, []string{"draft-07"}, "/t/op", "/executions/op", false},
		service{"Fiber v3's own", []string{build("tools/peers/fiberv3", "own")}, []string{"draft-07"}, "/t/op", "/executions/op", false},
	)
	node := filepath.Join(bin, "node") // a copy, so that the tree stays as it is
	if err := os.CopyFS(node, os.DirFS(filepath.Join(root, "tools", "peers", "node"))); err != nil {
		t.Fatal(err)
	}
	run(t, node, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	for _, p := range []struct {
		args     []string
		profiles []string
	}{
		{[]string{"nestjs-memory"}, []string{"draft-07"}},
		{[]string{"nestjs-redis", redis}, []string{"draft-07"}},
		{[]string{"express-idempotency"}, []string{"draft-07", "stripe"}},
		{[]string{"express-idempotency-redis", redis}, []string{"draft-07", "stripe"}},
		{[]string{"idempotency-backend"}, []string{"draft-07"}},
	} {
		command := append([]string{"node", filepath.Join(node, "judged.js")}, p.args...)
		all = append(all, service{p.args[0], command, p.profiles, "/judged", "/executions", false})
	}
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			base := start(t, s.command)
			for _, profile := range s.profiles {
				report, err := exec.CommandContext(t.Context(), judge, "judge", base+s.path, "--profile", profile,
					"--scope", "X-Test-Tenant: one", "--scope", "X-Test-Tenant: two", "--executions", base+s.counter).CombinedOutput()
				t.Logf("%s: %v\n%s", profile, err, report)
				if s.ours && err != nil {
					t.Error("a must is not met")
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
