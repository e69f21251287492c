package main

import (
	"fmt"
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
	server.do(t, http.MethodPost, "/t/x", "", nil, adaptertest.DefaultStatus, "1")
	server.Signal(t, syscall.SIGTERM)
	server.End(t)
}

func TestDrainEndsAfterItsBudgetAndSaysSo(t *testing.T) {
	t.Parallel()
	server := start(t)
	slow := adaptertest.Program{DelayMS: 60_000, IgnoreCtx: true}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.addr)
	labtest.Must(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /t/slow HTTP/1.1\r\nHost: test\r\nIdempotency-Key: k\r\n%s: %s\r\nContent-Length: 0\r\n\r\n", adaptertest.ProgramHeader, slow.Header())
	labtest.Eventually(t, "its handler runs", func() bool {
		_, report := server.do(t, http.MethodGet, "/executions/slow", "", nil, http.StatusOK, "")
		return strings.Contains(report, `"in_flight":1`)
	})
	began := time.Now()
	server.Signal(t, syscall.SIGTERM)
	if code := server.Exit(t); code != 1 || !strings.Contains(server.Output(), "unfinished operations (1)") {
		t.Errorf("exit code %d, want 1 and the reason\n%s", code, server.Output())
	}
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("ended after %v, before the budget of 5 s", took)
	}
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
	secret := &adaptertest.Program{Body: "secret", NoBody: true}
	for _, want := range []struct{ body, omitted string }{{"secret", ""}, {`{"status":"completed"}`, "omitted"}} {
		header, body := server.do(t, http.MethodPost, "/t/x", "k", secret, http.StatusOK, "1")
		if body != want.body || header.Get("Idempotency-Body") != want.omitted {
			t.Errorf("%q with %v, want the body once", body, header)
		}
	}
	server.do(t, http.MethodPost, "/t/y", "k", nil, adaptertest.DefaultStatus, "1")
	server.do(t, http.MethodPatch, "/t/y", "k", nil, adaptertest.DefaultStatus, "2")
	server.do(t, http.MethodPost, "/t/y?q", "k", nil, http.StatusUnprocessableEntity, "")
	server.do(t, http.MethodPost, "/t/y", "k", nil, adaptertest.DefaultStatus, "1")
}
