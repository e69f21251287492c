package main

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/lab/internal/labtest"
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
	p := program.Start(t, args...)
	return &process{p, p.Await(t, `listening on (\S+)\n`)}
}

// message is a request.
type message struct {
	method  string // default POST
	target  string // path and query
	key     string // quoted; empty: none
	program *adaptertest.Program
}

// answer is its response.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends m and reads the response to its end.
func (p *process) do(t *testing.T, m message) answer {
	t.Helper()
	if m.method == "" {
		m.method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(t.Context(), m.method, "http://"+p.addr+m.target, http.NoBody)
	labtest.Must(t, err)
	if m.key != "" {
		r.Header.Set("Idempotency-Key", `"`+m.key+`"`)
	}
	if m.program != nil {
		r.Header.Set(adaptertest.ProgramHeader, m.program.Header())
	}
	res, err := client.Do(r)
	labtest.Must(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	labtest.Must(t, err)
	return answer{res.StatusCode, res.Header, string(body)}
}

// want fails the test unless the response has that status.
func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d\n%v\n%.300s", a.status, status, a.header, a.body)
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
	labtest.Must(t, json.Unmarshal([]byte(a.body), &report))
	return report.Executions, report.InFlight
}
