package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
)

func TestSIGTERMDrainsRunningRequestsAndExits0(t *testing.T) {
	t.Parallel()
	server := start(t)
	conn := server.send(t, message{target: "/t/slow", key: "k", program: &adaptertest.Program{DelayMS: 3000, Body: "done"}})
	server.running(t, "slow")
	server.terminate(t)
	if a := receive(conn, http.MethodPost).want(t, 200).wantRun(t, "1"); a.body != "done" {
		t.Errorf("%q, want the whole answer", a.body)
	}
	if code := server.exit(t); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, server.stderr)
	}
	for _, msg := range []string{"listening", "drained"} {
		if !server.logged(t, msg) {
			t.Errorf("no line %q in the log", msg)
		}
	}
}

func TestSIGTERMWaitsForNoConnectionThatIsIdleOrNew(t *testing.T) {
	t.Parallel()
	server := start(t)
	dial(t, server.addr)
	server.do(t, message{target: "/t/x"}).want(t, 201)
	server.terminate(t)
	if code := server.exit(t); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, server.stderr)
	}
}

func TestDrainEndsAfterItsBudgetAndSaysSo(t *testing.T) {
	t.Parallel()
	server := start(t)
	server.send(t, message{target: "/t/slow", key: "k", program: &adaptertest.Program{DelayMS: 60_000, IgnoreCtx: true}})
	server.running(t, "slow")
	began := time.Now()
	server.terminate(t)
	if code := server.exit(t); code != 1 || !strings.Contains(server.stderr.String(), "unfinished operations (1)") {
		t.Errorf("exit code %d, want 1 and the reason\n%s", code, server.stderr)
	}
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("ended after %v, before the budget of 5 s", took)
	}
}
