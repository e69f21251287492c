// Package judged judges Reprise and other idempotency middlewares with reprise judge, and
// writes their scores into docs/engineering/judge-scores.md. It is a test for the servers
// of the lab alone, and part of no check.
//
//	make judge/peers
package judged

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/servers"
)

var folder = flag.String("write", "", "write the scores into the page in this `folder`, unless -run named some services")

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "3") // a run of the judge waits most of the time
	flag.Parse()
	servers.Main{M: m}.Run()
}

// root is the folder of go.work.
var root = filepath.Join("..", "..", "..")

func TestScores(t *testing.T) {
	b := &board{programs: t.TempDir(), date: time.Now().UTC().Format(time.DateOnly), commit: line(t, root, "git", "rev-parse", "--short", "HEAD"), versions: map[string]string{}}
	b.version("Go", strings.TrimPrefix(runtime.Version(), "go"))
	b.build(t, "cmd/reprise", ".")
	all := slices.Concat(ours(t, b), peers(t, b))
	judged := make([]*result, len(all))
	t.Run("all", func(t *testing.T) {
		for i, s := range all {
			t.Run(s.Name+", "+s.Variant, func(t *testing.T) {
				t.Parallel()
				defer func() {
					if t.Skipped() {
						b.leave(s, "a server or program that it needs is missing")
					}
				}()
				judged[i] = b.judge(t, s)
			})
		}
	})
	b.judged = slices.DeleteFunc(judged, func(r *result) bool { return r == nil })
	if *folder == "" || len(b.judged)+len(b.left) < len(all) {
		return
	}
	if err := b.write(*folder); err != nil {
		t.Fatal(err)
	}
}

// service is a service to judge.
type service struct {
	result

	profiles []string
	path     string                      // of the endpoint
	counter  string                      // of its runs
	command  func(t *testing.T) []string // starts it; a program that builds is below board.programs
}

// board has the programs and the results.
type board struct {
	programs, date, commit string // a folder, today, and what is judged

	mu       sync.Mutex
	versions map[string]string // of Go, Node and the servers
	judged   []*result
	left     []string // services without a result, and why
}

func (b *board) leave(s *service, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = append(b.left, s.Name+", "+s.Variant+": "+reason)
}

// version notes the version of a program.
func (b *board) version(name, version string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.versions[name] = strings.TrimPrefix(version, "v")
}

// build builds a package of a module as the module alone has it, and returns the path of
// the program.
func (b *board) build(t *testing.T, module, pkg string) string {
	t.Helper()
	program := filepath.Join(b.programs, filepath.FromSlash(module), filepath.FromSlash(pkg))
	if pkg == "." {
		program = filepath.Join(b.programs, filepath.Base(module))
	}
	line(t, filepath.Join(root, filepath.FromSlash(module)), "go", "build", "-o", program, "./"+pkg)
	return program
}

// line runs a command outside of the workspace and returns its output.
func line(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(command, " "), err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

// judge starts a service and judges it by its profiles. A peer that cannot be judged is
// left out with the reason; one of ours fails the test, as a must that it breaks does.
func (b *board) judge(t *testing.T, s *service) *result {
	command := s.command(t)
	base, err := listen(t, command)
	if err != nil {
		b.failed(t, s, "It does not start: "+err.Error())
		return nil
	}
	j := s.result
	j.Service = b.shown(command)
	for _, profile := range s.profiles {
		args := []string{"judge", base + s.path, "--profile", profile, "--scope", "X-Test-Tenant: one", "--scope", "X-Test-Tenant: two", "--executions", base + s.counter}
		run, err := b.run(t, profile, args)
		if err != nil {
			b.failed(t, s, "The judge gave up: "+err.Error())
			return nil
		}
		for _, c := range run.of("must", "not met", false) {
			if s.Ours && !slices.Contains(limits[c.ID], s.Variant) {
				t.Errorf("%s: %+v", profile, c)
			}
		}
		t.Logf("%s: %d musts are met", profile, len(run.of("must", "met", false)))
		j.Runs = append(j.Runs, run)
	}
	return &j
}

// limits are the variants of ours that do not meet a case, by its ID: the page says why.
var limits = map[string][]string{"large/huge": {"postgres-tx", "mysql-tx", "sqlite-tx"}, "concurrency/others": {"sqlite-tx"}}

func (b *board) failed(t *testing.T, s *service, reason string) {
	t.Helper()
	if s.Ours {
		t.Fatal(reason)
	}
	t.Log(reason)
	b.leave(s, strings.Join(strings.Fields(reason), " "))
}

// run runs the judge once.
func (b *board) run(t *testing.T, profile string, args []string) (run, error) {
	var errs strings.Builder
	cmd := exec.CommandContext(t.Context(), filepath.Join(b.programs, "reprise"), append(args, "--json")...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if !json.Valid(out) || len(out) == 0 { // exit code 1 says that a must is not met
		return run{}, &judgeError{errs.String(), err}
	}
	return read(profile, b.shown(append([]string{"reprise"}, args...)), out)
}

// judgeError is the end of a judge without a report.
type judgeError struct {
	said string
	err  error
}

func (e *judgeError) Error() string { return e.err.Error() + ": " + e.said }

// listen starts a program that prints where it listens, and returns its URL. The program
// is killed with the test.
func listen(t *testing.T, command []string) (string, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log")) // a pipe would have to be read
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, t.TempDir() // some keep their records in the working directory
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it was killed, or the log says why it ended
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = log.Close()
	})
	for {
		said, err := os.ReadFile(log.Name())
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.SplitSeq(string(said), "\n") {
			if addr, ok := strings.CutPrefix(l, "listening on "); ok && strings.HasSuffix(string(said), "\n") {
				return "http://" + addr, nil
			}
		}
		select {
		case <-ended:
			return "", &judgeError{string(said), context.Canceled}
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// private are the addresses of one run.
var private = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// shown returns a command for the page, in which other words stand for the addresses and
// folders of this run.
func (b *board) shown(command []string) string {
	words := make([]string, len(command))
	for i, w := range command {
		w = strings.ReplaceAll(w, b.programs+string(filepath.Separator), "")
		if filepath.IsAbs(w) {
			w = "FILE"
		}
		if w = private.ReplaceAllString(w, "HOST"); strings.Contains(w, " ") {
			w = "'" + w + "'"
		}
		words[i] = w
	}
	return strings.Join(words, " ")
}
