package matrix

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
)

// patience bounds how long a test waits for anything; no verdict rests on it.
const patience = time.Minute

// process is a test server that runs.
type process struct {
	base   string // of its addresses
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has
	client http.Client
	log    lockedBuffer
}

// start starts a test server and waits until it listens. It is killed when the test ends.
func start(tb testing.TB, program string, flags ...string) *process {
	tb.Helper()
	p := &process{exited: make(chan struct{}), client: http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	p.cmd = exec.CommandContext(context.WithoutCancel(tb.Context()), program, flags...)
	p.cmd.Stderr = &p.log
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		p.kill()
		if tb.Failed() || strings.Contains(p.log.String(), "DATA RACE") {
			tb.Errorf("%v logged\n%s", p.cmd.Args, p.log.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() {
		_ = p.cmd.Wait() // its state tells
		close(p.exited)
	}()
	if err != nil {
		tb.Fatalf("%v ended before it listened\n%s", p.cmd.Args, p.log.String())
	}
	p.base = "http://" + strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	return p
}

// kill ends the process without a chance to drain.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.exited
}

// signal sends the process a signal.
func (p *process) signal(tb testing.TB, s syscall.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		tb.Fatal(err)
	}
}

// drains waits until the process has ended, and wants the exit code 0.
func (p *process) drains(tb testing.TB) {
	tb.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		tb.Fatal("the process did not end after SIGTERM")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		tb.Errorf("exit code %d after SIGTERM, want 0", code)
	}
}

// request is a keyed POST to an operation of the same name as its key.
type request struct {
	key     string
	tenant  string // empty: that of the test server
	body    string
	program adaptertest.Program
}

// answer is the response to a request. Its status is 0 if it was cut short.
type answer struct {
	status   int
	header   http.Header
	body     string
	replayed bool
	code     string // of a problem of the middleware
}

// post sends a request and reads the response to its end.
func (p *process) post(ctx context.Context, r request) answer {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+"/t/"+r.key, strings.NewReader(r.body))
	if err != nil {
		return answer{body: err.Error()}
	}
	req.Header.Set("Idempotency-Key", r.key)
	req.Header.Set(adaptertest.ProgramHeader, r.program.Header())
	if r.tenant != "" {
		req.Header.Set(adaptertest.TenantHeader, r.tenant)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return answer{body: err.Error()}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{body: err.Error()}
	}
	a := answer{status: res.StatusCode, header: res.Header, body: string(body), replayed: res.Header.Get("Idempotent-Replayed") == "true"}
	if res.Header.Get("Content-Type") == "application/problem+json" {
		var problem struct{ Code string }
		_ = json.Unmarshal(body, &problem) // the code tells
		a.code = problem.Code
	}
	return a
}

// postLater sends a request, and returns once its handler runs. The channel gets the
// answer.
func (p *process) postLater(tb testing.TB, r request) <-chan answer {
	tb.Helper()
	answers := make(chan answer, 1)
	ctx := context.WithoutCancel(tb.Context())
	before := p.runs(tb, r.key)
	go func() { answers <- p.post(ctx, r) }()
	eventually(tb, r.key+" runs", func() bool { return p.runs(tb, r.key) > before })
	return answers
}

// runs returns how often the handler of an operation has run in this process.
func (p *process) runs(tb testing.TB, op string) int {
	tb.Helper()
	var report struct{ Executions int }
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, p.base+"/executions/"+op, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	res, err := p.client.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&report); err != nil {
		tb.Fatal(errors.Join(errors.New(res.Status), err))
	}
	return report.Executions
}

// eventually polls until done reports true.
func eventually(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !done(); <-tick.C {
		if time.Now().After(deadline) {
			tb.Fatalf("never: %s", what)
		}
	}
}

// lockedBuffer collects the log of a process.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
