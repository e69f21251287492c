package main

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers/program"
)

func TestSIGTERMWaitsForNoConnectionThatIsIdleOrNew(t *testing.T) {
	t.Parallel()
	server := start(t)
	idle, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.addr)
	labtest.Must(t, err)
	defer idle.Close()
	server.do(t, message{target: "/t/x"}).want(t, 201)
	server.Signal(t, syscall.SIGTERM)
	server.End(t)
}

func TestDrainEndsAfterItsBudgetAndSaysSo(t *testing.T) {
	t.Parallel()
	server := start(t)
	_, leave := server.running(t, message{target: "/t/slow", key: "k", program: &adaptertest.Program{DelayMS: 60_000, IgnoreCtx: true}})
	defer leave()
	began := time.Now()
	server.Signal(t, syscall.SIGTERM)
	if code := server.Exit(t); code != 1 || !strings.Contains(server.Output(), "unfinished operations (1)") {
		t.Errorf("exit code %d, want 1 and the reason\n%s", code, server.Output())
	}
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("ended after %v, before the budget of 5 s", took)
	}
}

func TestPurgeDeletesWhatIsPastItsRetention(t *testing.T) {
	t.Parallel()
	server := start(t, "-retention", "100ms", "-purge", "10ms")
	m := message{target: "/t/x", key: "k"}
	server.do(t, m).wantRun(t, "1")
	eventually(t, "a purge", func() bool { return server.logged(t, "purged") })
	server.do(t, m).wantRun(t, "2")
}

func TestInvalidProgramIsRefusedAndLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	server := start(t)
	m := message{target: "/t/bad", key: "k", raw: `{"stauts":1}`}
	if a := server.do(t, m).want(t, http.StatusBadRequest); !strings.Contains(a.body, `unknown field "stauts"`) {
		t.Errorf("%q, want the reason", a.body)
	}
	m.raw = ""
	server.do(t, m).want(t, adaptertest.DefaultStatus).wantRun(t, "1")
}

// What TestInvalidFlagsAreRefused of lab/serve finds ends the process with 2, and what
// shows when it starts with 1.
func TestServerThatCannotStartEndsAtOnce(t *testing.T) {
	t.Parallel()
	taken := start(t)
	for flags, want := range map[string]struct {
		text string
		code int
	}{
		"-frobnicate":         {"-frobnicate", 2},
		"-h":                  {"-max-request", 0},
		"-store redis":        {"needs -redis-url", 1},
		"-store postgres":     {"needs -postgres-url", 1},
		"-store postgres-tx":  {"needs -postgres-url", 1},
		"-addr nowhere":       {"nowhere", 1},
		"-addr " + taken.addr: {"address already in use", 1},
		"-store redis -redis-url http://user:secret@x":       {"redis", 1},
		"-store postgres -postgres-url http://user:secret@x": {"store postgres", 1},
	} {
		p := program.Start(t, strings.Fields(flags)...)
		code, says := p.Exit(t), p.Output()
		if code != want.code || !strings.Contains(says, want.text) || strings.Contains(says, "listening on") || strings.Contains(says, "secret") {
			t.Errorf("%s: exit code %d, printed %q, want code %d and a message with %q", flags, code, says, want.code, want.text)
		}
	}
}

// No suite needs these.
func TestKeysPerEndpointAndResponsesWithoutTheirBody(t *testing.T) {
	t.Parallel()
	server := start(t, "-per-endpoint")
	secret := message{target: "/t/x", key: "k", program: &adaptertest.Program{Body: "secret", NoBody: true}}
	for _, want := range []struct{ body, omitted string }{{"secret", ""}, {`{"status":"completed"}`, "omitted"}} {
		if a := server.do(t, secret).want(t, http.StatusOK).wantRun(t, "1"); a.body != want.body || a.header.Get("Idempotency-Body") != want.omitted {
			t.Errorf("%q with %v, want the body once", a.body, a.header)
		}
	}
	server.do(t, message{target: "/t/y", key: "k"}).want(t, adaptertest.DefaultStatus).wantRun(t, "1")
	server.do(t, message{method: http.MethodPatch, target: "/t/y", key: "k"}).wantRun(t, "2")
	server.do(t, message{target: "/t/y?q", key: "k"}).want(t, http.StatusUnprocessableEntity)
	server.do(t, message{target: "/t/y", key: "k"}).wantRun(t, "1")
}

func TestDelayEndsWithTheContextUnlessIgnored(t *testing.T) {
	t.Parallel()
	server := start(t)
	for op, ignore := range map[string]bool{"gives-up": false, "works-on": true} {
		// Without a key the context is the client's.
		_, leave := server.running(t, message{target: "/t/" + op, program: &adaptertest.Program{DelayMS: 60_000, IgnoreCtx: ignore}})
		leave()
	}
	eventually(t, "the handler gives up", func() bool {
		_, inFlight := server.counts(t, "gives-up")
		return inFlight == 0
	})
	if _, inFlight := server.counts(t, "works-on"); inFlight != 1 {
		t.Error("the handler that ignores its context gave up")
	}
}

func TestALayerOutsideReadsTheBodyAway(t *testing.T) {
	t.Parallel()
	m := message{target: "/t/x", key: "k", body: `{"a":1}`}
	start(t, "-outer-body", "drain").do(t, m).want(t, http.StatusBadRequest)
	start(t).do(t, m).want(t, adaptertest.DefaultStatus)
}
