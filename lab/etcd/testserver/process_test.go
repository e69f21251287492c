package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
	"github.com/reprise-go/reprise/servers"
)

// A process of the test server is killed while one request runs. The next process replays
// the others, and never runs that one again. When Redis has lost its bodies, their
// requests are not run again either.
func TestNextProcessAnswersForAKilledOne(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "testserver")
	if err := etcdcluster.Build(".", program); err != nil {
		t.Fatal(err)
	}
	members := strings.Join(etcdcluster.Start(t, 3).Addrs(), ",")
	for _, adapter := range slices.Sorted(maps.Keys(adapters)) {
		for _, store := range []string{"etcd", "etcd+redis"} {
			t.Run(store+"/"+adapter, func(t *testing.T) {
				t.Parallel()
				args := []string{"-adapter", adapter, "-store", store, "-etcd-url", members, "-lease", "5s", "-preset", "at-most-once"}
				var redis *servers.RedisServer
				if store == "etcd+redis" {
					redis = servers.Redis.Start(t)
					args = append(args, "-redis-url", redis.URL())
				}
				first := startProcess(t, program, args...)
				first.wants("small", 100, "")
				first.wants("large", 100_000, "")
				cut := make(chan error, 1)
				go func() {
					_, err := first.post("running", adaptertest.Program{DelayMS: 60_000})
					cut <- err
				}()
				first.awaitRunning("running")
				first.kill()
				if err := <-cut; err == nil {
					t.Error("the killed process answered the request that ran")
				}

				next := startProcess(t, program, args...)
				next.wants("small", 100, "true")
				next.wants("large", 100_000, "true")
				next.wantsProblem("running", "in-progress", "outcome-unknown")
				if n := next.executions("running"); n.Executions > 0 {
					t.Errorf("%d runs of the request that a killed process ran", n.Executions)
				}
				if redis != nil {
					redis.Kill(t)
					redis.Restart(t)
					next.wants("small", 100, "true")
					next.wantsProblem("large", "", "result-unavailable")
				}
			})
		}
	}
}

// process is a process of the test server.
type process struct {
	*testing.T

	command *exec.Cmd
	base    string
	client  http.Client
}

func startProcess(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := &process{T: t, command: exec.CommandContext(t.Context(), program, args...), client: http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	p.command.Stderr = os.Stderr
	out, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	p.base = "http://" + strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	return p
}

// kill kills the process, unless it is dead.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// answer is the answer to a request.
type answer struct {
	status         int
	replayed, body string
}

// post sends the request of a key, which is the name of its operation as well.
func (p *process) post(key string, run adaptertest.Program) (answer, error) {
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.base+"/t/"+key, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	text, err := json.Marshal(run)
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set(adaptertest.TenantHeader, p.Name())
	r.Header.Set(adaptertest.ProgramHeader, string(text))
	got, err := p.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, got.Header.Get("Idempotent-Replayed"), string(body)}, err
}

// wants sends a request, and wants a body of a size.
func (p *process) wants(key string, size int, replayed string) {
	p.Helper()
	got, err := p.post(key, adaptertest.Program{BodySize: size})
	if err != nil {
		p.Fatal(err)
	}
	if want := (answer{http.StatusOK, replayed, string(adaptertest.PatternBody(size))}); got != want {
		p.Errorf("%s: %d, replayed %q, %d bytes; want 200, replayed %q", key, got.status, got.replayed, len(got.body), replayed)
	}
}

// wantsProblem sends a request until it does not get the first problem, and wants the
// second.
func (p *process) wantsProblem(key, until, want string) {
	p.Helper()
	etcdcluster.Eventually(p, func() error {
		got, err := p.post(key, adaptertest.Program{})
		switch {
		case err != nil || until != "" && strings.Contains(got.body, "#"+until):
			return fmt.Errorf("%s: %v, %w", key, got, err)
		case got.status != http.StatusConflict || !strings.Contains(got.body, "#"+want):
			p.Errorf("%s: %v, want 409 %s", key, got, want)
		}
		return nil
	})
}

type executions struct {
	Executions int `json:"executions"`
	InFlight   int `json:"in_flight"`
}

func (p *process) executions(operation string) (n executions) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodGet, p.base+"/executions/"+operation, http.NoBody)
	if err != nil {
		p.Fatal(err)
	}
	got, err := p.client.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer got.Body.Close()
	if err := json.NewDecoder(got.Body).Decode(&n); err != nil {
		p.Fatal(fmt.Errorf("%s: %w", got.Status, err))
	}
	return n
}

// awaitRunning waits until an operation runs.
func (p *process) awaitRunning(operation string) {
	p.Helper()
	etcdcluster.Eventually(p, func() error {
		if p.executions(operation).InFlight == 0 {
			return fmt.Errorf("%s does not run", operation)
		}
		return nil
	})
}
