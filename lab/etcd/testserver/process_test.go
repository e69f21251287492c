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
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
	"github.com/reprise-go/reprise/lab/servers"
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
				first.wants("small", adaptertest.Program{BodySize: 100}, http.StatusOK, "")
				first.wants("large", adaptertest.Program{BodySize: 100_000}, http.StatusOK, "")
				cut := make(chan error, 1)
				go func() {
					_, _, err := first.post("running", adaptertest.Program{DelayMS: 60_000})
					cut <- err
				}()
				first.awaitRunning("running")
				first.kill()
				if err := <-cut; err == nil {
					t.Error("the killed process answered the request that ran")
				}

				next := startProcess(t, program, args...)
				next.wants("small", adaptertest.Program{BodySize: 100}, http.StatusOK, "true")
				next.wants("large", adaptertest.Program{BodySize: 100_000}, http.StatusOK, "true")
				next.wantsProblem("running", "in-progress", "outcome-unknown")
				if n := next.executions("running"); n.Executions > 0 {
					t.Errorf("%d runs of the request that a killed process ran", n.Executions)
				}
				if redis != nil {
					redis.Kill(t)
					redis.Restart(t)
					next.wants("small", adaptertest.Program{BodySize: 100}, http.StatusOK, "true")
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

// post sends the request of a key, which is the name of its operation as well.
func (p *process) post(key string, run adaptertest.Program) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.base+"/t/"+key, http.NoBody)
	if err != nil {
		return nil, "", err
	}
	text, err := json.Marshal(run)
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set(adaptertest.TenantHeader, p.Name())
	r.Header.Set(adaptertest.ProgramHeader, string(text))
	got, err := p.client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return got, string(body), err
}

// wants sends a request, and wants its body in full.
func (p *process) wants(key string, run adaptertest.Program, status int, replayed string) {
	p.Helper()
	got, body, err := p.post(key, run)
	switch {
	case err != nil:
		p.Fatal(err)
	case got.StatusCode != status, got.Header.Get("Idempotent-Replayed") != replayed, body != string(adaptertest.PatternBody(run.BodySize)):
		p.Errorf("%s: %s, replayed %q, %d bytes; want %d, replayed %q", key, got.Status, got.Header.Get("Idempotent-Replayed"), len(body), status, replayed)
	}
}

// wantsProblem sends a request until it gets a problem other than one.
func (p *process) wantsProblem(key, until, want string) {
	p.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		got, body, err := p.post(key, adaptertest.Program{})
		if err != nil {
			p.Fatal(err)
		}
		if until != "" && strings.Contains(body, "#"+until) && time.Now().Before(deadline) {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if got.StatusCode != http.StatusConflict || !strings.Contains(body, "#"+want) {
			p.Errorf("%s: %s %s, want 409 %s", key, got.Status, body, want)
		}
		return
	}
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
	for deadline := time.Now().Add(time.Minute); p.executions(operation).InFlight == 0; {
		if time.Now().After(deadline) {
			p.Fatalf("%s does not run", operation)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
