package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	reprise "github.com/reprise-go/reprise/core"
)

// flagCase is flags and what they do, as a client of the server observes it.
type flagCase struct {
	flags string
	check func(t *testing.T, server *process)
}

func runFlags(t *testing.T, cases map[string]flagCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t, start(t, strings.Fields(c.flags)...))
		})
	}
}

var isJSON = []string{"Content-Type: application/json"}

func TestEachPolicyFlagTakesEffect(t *testing.T) {
	t.Parallel()
	failure := &adaptertest.Program{Status: 500}
	large := &adaptertest.Program{BodySize: 11}
	runFlags(t, map[string]flagCase{
		"preset recoverable": {"-preset recoverable", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x", key: "k", program: failure}).want(t, 500).wantRun(t, "1")
			server.do(t, message{target: "/t/x", key: "k", program: failure}).want(t, 500).wantRun(t, "2")
		}},
		"preset at-most-once": {"-preset at-most-once", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x", key: "k", program: failure}).want(t, 500).wantRun(t, "1")
			server.do(t, message{target: "/t/x", key: "k", program: failure}).want(t, 500).wantRun(t, "1")
		}},
		"key-mode compat": {"-key-mode compat", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x", fields: []string{"Idempotency-Key: bare"}}).want(t, 201)
		}},
		"key-mode strict": {"-key-mode strict", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x", fields: []string{"Idempotency-Key: bare"}}).wantCode(t, 400, "key-invalid")
			server.do(t, message{target: "/t/x", key: "k"}).want(t, 201)
		}},
		"not required": {"", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x"}).want(t, 201)
		}},
		"required": {"-required", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x"}).wantCode(t, 400, "key-missing")
		}},
		"key header": {"-key header", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x", key: "k"}).wantRun(t, "1")
			server.do(t, message{target: "/t/x", key: "k"}).wantRun(t, "1")
			server.do(t, message{target: "/t/x", fields: isJSON, body: `{"id":"k"}`}).wantRun(t, "2")
		}},
		"key field": {"-key field:/order/id", func(t *testing.T, server *process) {
			t.Helper()
			m := message{target: "/t/x", fields: isJSON, body: `{"order":{"id":"k"}}`}
			server.do(t, m).wantRun(t, "1")
			server.do(t, m).wantRun(t, "1")
			m.body = `{"order":{"id":"k"},"amount":1}`
			server.do(t, m).wantCode(t, 422, "key-reused")
			m.body = `{"id":"k"}`
			server.do(t, m).wantRun(t, "2")
			server.do(t, m).wantRun(t, "3")
		}},
		"key param": {"-key param:id", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x?id=k"}).wantRun(t, "1")
			server.do(t, message{target: "/t/x?id=k"}).wantRun(t, "1")
			server.do(t, message{target: "/t/x?di=k"}).wantRun(t, "2")
			server.do(t, message{target: "/t/x?di=k"}).wantRun(t, "3")
		}},
		"key content": {"-key content", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x", body: "a"}).wantRun(t, "1")
			server.do(t, message{target: "/t/x", body: "b"}).wantRun(t, "2")
			server.do(t, message{target: "/t/x", body: "a"}).wantRun(t, "1")
		}},
		"key content for a retention": {"-key content -retention 100ms", func(t *testing.T, server *process) {
			t.Helper()
			m := message{target: "/t/x", body: "a"}
			server.do(t, m).wantRun(t, "1")
			eventually(t, "the window ends", func() bool { return server.do(t, m).header.Get(adaptertest.ExecHeader) == "2" })
		}},
		"the last key": {"-key content -key param:id", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x"}).wantRun(t, "1")
			server.do(t, message{target: "/t/x"}).wantRun(t, "2")
		}},
		"horizon": {"-retention 100ms -horizon 1h", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x", key: "k"}).wantRun(t, "1")
			eventually(t, "the retention ends", func() bool { return server.do(t, message{target: "/t/x", key: "k"}).status == http.StatusConflict })
			server.do(t, message{target: "/t/x", key: "k"}).wantCode(t, 409, "result-expired")
		}},
		"end of a horizon": {"-retention 100ms -horizon 100ms", func(t *testing.T, server *process) {
			t.Helper()
			m := message{target: "/t/x", key: "k"}
			server.do(t, m).wantRun(t, "1")
			eventually(t, "the horizon ends", func() bool { return server.do(t, m).header.Get(adaptertest.ExecHeader) == "2" })
		}},
		"max-run": {"-max-run 10ms", func(t *testing.T, server *process) {
			t.Helper()
			program := &adaptertest.Program{DelayMS: int(adaptertest.MaxDelay.Milliseconds()), Echo: true, Status: 404}
			for _, n := range []string{"1", "2"} { // a 4xx of a run that was cancelled is not kept
				a := server.do(t, message{target: "/t/x", key: "k", program: program}).want(t, 404).wantRun(t, n)
				if got, want := a.echo(t).ContextCause, reprise.ErrRunTooLong.Error(); got != want {
					t.Errorf("the handler's context was cancelled by %q, want %q", got, want)
				}
			}
		}},
		"methods": {"-methods PUT,DELETE", func(t *testing.T, server *process) {
			t.Helper()
			for _, c := range []struct{ method, second string }{{"PUT", "1"}, {"DELETE", "1"}, {"POST", "2"}, {"PATCH", "2"}} {
				m := message{method: c.method, target: "/t/" + c.method, key: c.method}
				server.do(t, m).wantRun(t, "1")
				server.do(t, m).wantRun(t, c.second)
			}
		}},
		"one identity": {"", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x", key: "k"}).want(t, 201)
			server.do(t, message{target: "/t/y", key: "k"}).wantCode(t, 422, "key-reused")
		}},
		"per-endpoint": {"-per-endpoint", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x", key: "k"}).want(t, 201)
			server.do(t, message{target: "/t/y", key: "k"}).want(t, 201)
			server.do(t, message{method: "PATCH", target: "/t/y", key: "k"}).wantRun(t, "2")
			server.do(t, message{target: "/t/y?q", key: "k"}).wantCode(t, 422, "key-reused")
			server.do(t, message{target: "/t/y", key: "k"}).wantRun(t, "1")
		}},
		"max-request": {"-max-request 4", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x", key: "k", body: "12345"}).wantCode(t, 413, "request-too-large")
			server.do(t, message{target: "/t/x", key: "k", body: "1234"}).want(t, 201)
		}},
		"oversize summary": {"-max-response 10 -oversize summary", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x", key: "k", program: large}).want(t, 200)
			a := server.do(t, message{target: "/t/x", key: "k", program: large}).want(t, 200)
			if a.body != `{"status":"completed"}` {
				t.Errorf("%q, want the summary", a.body)
			}
		}},
		"oversize unavailable": {"-max-response 10 -oversize unavailable", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x", key: "k", program: large}).want(t, 200)
			server.do(t, message{target: "/t/x", key: "k", program: large}).wantCode(t, 409, "result-unavailable")
		}},
		"max-response": {"-max-response 11", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x", key: "k", program: large}).want(t, 200)
			server.do(t, message{target: "/t/x", key: "k", program: large}).want(t, 200).wantRun(t, "1")
		}},
		"max-records": {"-max-records 1", func(t *testing.T, server *process) {
			t.Helper()
			server.do(t, message{target: "/t/x", key: "k"}).want(t, 201)
			server.do(t, message{target: "/t/x", key: "l"}).wantCode(t, 503, "store-unavailable")
		}},
	})
}

func TestRetentionEndsAReplayAndPurgeDeletesItsRecord(t *testing.T) {
	t.Parallel()
	server := start(t, "-retention", "100ms", "-purge", "10ms")
	m := message{target: "/t/x", key: "k"}
	server.do(t, m).wantRun(t, "1")
	eventually(t, "a purge", func() bool { return server.logged(t, "purged") })
	server.do(t, m).wantRun(t, "2")
}

func TestWaitReplaysToDuplicatesUpToMaxWaiters(t *testing.T) {
	t.Parallel()
	server := start(t, "-wait", "20s", "-max-waiters", "1")
	m := message{target: "/t/slow", key: "k", program: &adaptertest.Program{DelayMS: 5000}}
	first := server.send(t, m)
	server.running(t, "slow")
	waiting := []chan answer{make(chan answer, 1), make(chan answer, 1)}
	for _, done := range waiting {
		conn := server.send(t, m)
		go func() { done <- receive(conn, http.MethodPost) }()
	}
	// One of the two waits, and the other is refused at once.
	var refused answer
	replayed := waiting[0]
	select {
	case refused = <-waiting[0]:
		replayed = waiting[1]
	case refused = <-waiting[1]:
	}
	refused.wantCode(t, http.StatusConflict, "in-progress")
	receive(first, http.MethodPost).want(t, 200)
	if a := (<-replayed).want(t, 200).wantRun(t, "1"); a.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%v, want a replay", a.header)
	}
}
