package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
)

func TestEachPolicyFlagTakesEffect(t *testing.T) {
	t.Parallel()
	failure := &adaptertest.Program{Status: 500}
	large := &adaptertest.Program{BodySize: 11}
	for name, c := range map[string]struct {
		flags string
		check func(t *testing.T, server *process)
	}{
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t, start(t, strings.Fields(c.flags)...))
		})
	}
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

func TestWithoutWaitADuplicateIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	server := start(t)
	m := message{target: "/t/slow", key: "k", program: &adaptertest.Program{DelayMS: 10_000}}
	server.send(t, m)
	server.running(t, "slow")
	began := time.Now()
	server.do(t, m).wantCode(t, http.StatusConflict, "in-progress")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("refused after %v", took)
	}
}

func TestOuterLayerIsPerRequest(t *testing.T) {
	t.Parallel()
	server := start(t, "-outer")
	m := message{target: "/t/x", key: "k", fields: []string{"Origin: https://a.example"}}
	first, retry := server.do(t, m).want(t, 201), server.do(t, m).want(t, 201).wantRun(t, "1")
	for _, name := range []string{"X-Request-Id", "Set-Cookie", "Access-Control-Allow-Origin"} {
		a, b := first.header.Values(name), retry.header.Values(name)
		if len(a) != 1 || len(b) != 1 {
			t.Errorf("%s: %q, then %q; want one each", name, a, b)
		}
		if name != "Access-Control-Allow-Origin" && a[0] == b[0] {
			t.Errorf("%s: %q twice, want it anew", name, a)
		}
	}
	if got := first.header.Get("Access-Control-Allow-Origin"); got != "https://a.example" {
		t.Errorf("Access-Control-Allow-Origin is %q, want the origin", got)
	}
}

func TestInvalidFlagEndsTheServerAtOnce(t *testing.T) {
	t.Parallel()
	taken := start(t)
	for name, c := range map[string]struct {
		flags, want string
		code        int
	}{
		"unknown flag":        {"-frobnicate", "-frobnicate", 2},
		"argument":            {"nethttp", `"nethttp"`, 2},
		"adapter":             {"-adapter rails", `"rails" for flag -adapter: want one of`, 2},
		"store":               {"-store etcd", `"etcd" for flag -store: want one of memory,`, 2},
		"preset":              {"-preset exactly-once", "want one of at-most-once, recoverable", 2},
		"key mode":            {"-key-mode lax", "want one of compat, strict", 2},
		"oversize":            {"-oversize offload", "want one of summary, unavailable", 2},
		"duration":            {"-lease soon", "-lease", 2},
		"short lease":         {"-lease 10ms", "Config.Lease", 2},
		"short retention":     {"-retention 1us", "Config.Retention", 2},
		"negative wait":       {"-wait -1s", "Config.Wait", 2},
		"negative waiters":    {"-max-waiters -1", "Config.Waiting", 2},
		"negative body":       {"-max-request -1", "Config.Limits.RequestBody", 2},
		"large body":          {"-max-response 999999999", "Config.Limits.ResponseBody", 2},
		"negative records":    {"-max-records -1", "-max-records", 2},
		"negative pool":       {"-pool -1", "-pool", 2},
		"negative purge":      {"-purge -1s", "-purge", 2},
		"negative tx-timeout": {"-tx-timeout -1s", "-tx-timeout", 2},
		"method":              {"-methods GET", "Config.Methods", 2},
		"boolean":             {"-required=perhaps", "-required", 2},
		"contradiction":       {"-fail-open -preset at-most-once", "Config.FailOpen", 2},
		"no redis-url":        {"-store redis", "needs -redis-url", 1},
		"no postgres-url":     {"-store postgres", "needs -postgres-url", 1},
		"no postgres-url, tx": {"-store postgres-tx", "needs -postgres-url", 1},
		"bad redis-url":       {"-store redis -redis-url http://user:secret@x", "redis", 1},
		"bad postgres-url":    {"-store postgres -postgres-url http://user:secret@x", "store postgres", 1},
		"no such address":     {"-addr nowhere", "nowhere", 1},
		"address taken":       {"-addr " + taken.addr, "address already in use", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, strings.Fields(c.flags)...)
			if code := p.exit(t); code != c.code || !strings.Contains(p.stderr.String(), c.want) || p.stdout.String() != "" {
				t.Errorf("exit code %d, printed %q and %q, want code %d and a message with %q", code, p.stdout, p.stderr, c.code, c.want)
			}
			if strings.Contains(p.stderr.String(), "secret") {
				t.Errorf("%q has the password in it", p.stderr)
			}
		})
	}
}

func TestHelpListsEveryFlag(t *testing.T) {
	t.Parallel()
	p := launch(t, "-h")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for name := range strings.FieldsSeq(`adapter store addr redis-url postgres-url pool lease retention preset key-mode required methods
		per-endpoint wait max-waiters oversize max-request max-response max-records fail-open purge tx-timeout outer`) {
		if !strings.Contains(p.stderr.String(), "\n  -"+name) && !strings.HasPrefix(p.stderr.String(), "  -"+name) {
			t.Errorf("no -%s in the help", name)
		}
	}
}
