package main

import (
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

// do sends a request with a key, or none, and with a program, or none. It demands the
// status of the response, and the run of its op that it came from, by a handler or as a
// replay.
func (p *process) do(t *testing.T, method, target, key string, program *adaptertest.Program, status int, run string) (header http.Header, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.addr+target, http.NoBody)
	labtest.Must(t, err)
	if key != "" {
		r.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	if program != nil {
		r.Header.Set(adaptertest.ProgramHeader, program.Header())
	}
	res, err := client.Do(r)
	labtest.Must(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	labtest.Must(t, err)
	if got := res.Header.Get(adaptertest.ExecHeader); res.StatusCode != status || got != run {
		t.Fatalf("%s %s: status %d of run %q, want %d of %q\n%v\n%.300s", method, target, res.StatusCode, got, status, run, res.Header, text)
	}
	return res.Header, string(text)
}
