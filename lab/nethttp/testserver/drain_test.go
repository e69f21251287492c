package main

import (
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
)

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
