package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/servers/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

// process is a testserver that runs.
type process struct {
	*program.Process

	addr string // that it listens on
}

// client opens a connection for each request, so that it repeats none by itself.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// start starts a testserver, and waits until it listens. It is killed when the test ends.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return listening(t, program.Start(t, args...))
}

// listening waits until a testserver listens.
func listening(t *testing.T, p *program.Process) *process {
	t.Helper()
	return &process{p, p.Await(t, `listening on (\S+)\n`)}
}

// logged reports whether a line with that message is in the log, all of which has to be
// JSON.
func (p *process) logged(t *testing.T, msg string) (found bool) {
	t.Helper()
	for line := range strings.Lines(p.Output()) {
		var entry struct{ Msg string }
		if line != "listening on "+p.addr+"\n" && strings.HasSuffix(line, "\n") { // else it is being written
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatalf("log line %q: %v", line, err)
			}
		}
		found = found || entry.Msg == msg
	}
	return found
}

// eventually polls until done reports true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// message is a request.
type message struct {
	method  string // default POST
	target  string // path and query
	key     string // quoted; empty: none
	program *adaptertest.Program
	raw     string // a program as it is written
	body    string // of JSON
}

// answer is its response.
type answer struct {
	status int // 0: there was none
	header http.Header
	body   string
	err    error
}

// do sends m and reads the response to its end.
func (p *process) do(t *testing.T, m message) answer {
	t.Helper()
	return p.send(t.Context(), m)
}

func (p *process) send(ctx context.Context, m message) answer {
	if m.method == "" {
		m.method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, m.method, "http://"+p.addr+m.target, strings.NewReader(m.body))
	if err != nil {
		return answer{err: err}
	}
	if m.key != "" {
		r.Header.Set("Idempotency-Key", `"`+m.key+`"`)
	}
	if m.program != nil {
		m.raw = m.program.Header()
	}
	if m.raw != "" {
		r.Header.Set(adaptertest.ProgramHeader, m.raw)
	}
	if m.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := client.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(body), err}
}

// running sends m, and returns once its handler runs. The channel gets the answer, and
// leave ends the connection.
func (p *process) running(t *testing.T, m message) (answers <-chan answer, leave func()) {
	t.Helper()
	ctx, leave := context.WithCancel(context.WithoutCancel(t.Context()))
	sent := make(chan answer, 1)
	go func() { sent <- p.send(ctx, m) }()
	op := strings.TrimPrefix(m.target, "/t/")
	eventually(t, op+" runs", func() bool {
		_, inFlight := p.counts(t, op)
		return inFlight > 0
	})
	return sent, leave
}

// want fails the test unless the response has that status.
func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.status != status || a.err != nil {
		t.Fatalf("status %d, error %v, want %d\n%v\n%.300s", a.status, a.err, status, a.header, a.body)
	}
	return a
}

// wantRun fails the test unless the response came from the n-th run of its op, by a
// handler or as a replay.
func (a answer) wantRun(t *testing.T, n string) answer {
	t.Helper()
	if got := a.header.Get(adaptertest.ExecHeader); got != n {
		t.Fatalf("answer of run %q, want %q: status %d\n%.300s", got, n, a.status, a.body)
	}
	return a
}

// counts asks how many runs of an op there were, and how many have not ended.
func (p *process) counts(t *testing.T, op string) (executions, inFlight int) {
	t.Helper()
	var report struct {
		Executions int `json:"executions"`
		InFlight   int `json:"in_flight"`
	}
	a := p.do(t, message{method: http.MethodGet, target: "/executions/" + op}).want(t, http.StatusOK)
	if err := json.Unmarshal([]byte(a.body), &report); err != nil {
		t.Fatalf("%q: %v", a.body, err)
	}
	return report.Executions, report.InFlight
}
