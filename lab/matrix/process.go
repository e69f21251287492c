package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/servers/program"
)

// patience bounds how long a test waits for anything; no verdict rests on it.
const patience = time.Minute

// process is a test server that runs.
type process struct {
	*program.Process

	base   string // of its addresses
	client http.Client
}

// start starts a test server and waits until it listens. It is killed when the test ends.
func start(tb testing.TB, file string, flags ...string) *process {
	tb.Helper()
	p := &process{Process: program.StartFile(tb, file, flags...), client: http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	tb.Cleanup(func() {
		p.Kill()
		if log := p.Output(); tb.Failed() || strings.Contains(log, "DATA RACE") {
			tb.Errorf("%v logged\n%s", flags, log)
		}
	})
	p.base = "http://" + p.Await(tb, `listening on (\S+)\n`)
	return p
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
