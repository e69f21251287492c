package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
)

// Every field of a program, over net/http and the memory store: the first response, and
// that of its retry.
func TestEachProgramFieldTakesEffect(t *testing.T) {
	t.Parallel()
	server := start(t)
	pattern := string(adaptertest.PatternBody(2000))
	for op, c := range map[string]struct {
		program adaptertest.Program
		check   func(t *testing.T, first, retry answer)
	}{
		"nothing": {check: both(http.StatusOK, "")},
		"status":  {adaptertest.Program{Status: 418}, both(418, "")},
		"body":    {adaptertest.Program{Body: "é"}, both(http.StatusOK, "é")},
		"base64":  {adaptertest.Program{BodyBase64: []byte{0, 0xff}}, both(http.StatusOK, "\x00\xff")},
		"size":    {adaptertest.Program{BodySize: 2000}, both(http.StatusOK, pattern)},
		"string":  {adaptertest.Program{BodySize: 2000, Write: adaptertest.WriteString}, both(http.StatusOK, pattern)},
		"copy":    {adaptertest.Program{BodySize: 2000, Write: adaptertest.WriteCopy}, both(http.StatusOK, pattern)},
		"headers": {
			adaptertest.Program{Headers: []adaptertest.Pair{{"X-A", "1"}, {"X-A", "2"}}},
			func(t *testing.T, first, retry answer) {
				t.Helper()
				for _, a := range []answer{first, retry} {
					if got := a.header.Values("X-A"); !slices.Equal(got, []string{"1", "2"}) {
						t.Errorf("X-A is %q, want 1 and 2", got)
					}
				}
			},
		},
		"headers-after": {
			adaptertest.Program{Body: "ab", HeadersAfter: []adaptertest.Pair{{"X-Late", "1"}}},
			func(t *testing.T, first, retry answer) {
				t.Helper()
				both(http.StatusOK, "ab")(t, first, retry)
				if got := first.header.Get("X-Late"); got != "" {
					t.Errorf("X-Late is %q, want it to come too late", got)
				}
			},
		},
		"chunks": {
			adaptertest.Program{Body: "a", Chunks: []adaptertest.Chunk{{Body: "b"}, {DelayMS: 1, Body: "c"}}},
			both(http.StatusOK, "abc"),
		},
		"informational": {
			adaptertest.Program{Status: 201, Informational: []adaptertest.Interim{{Status: 103, Headers: []adaptertest.Pair{{"Link", "</a>"}}}}},
			func(t *testing.T, first, retry answer) {
				t.Helper()
				both(http.StatusCreated, "")(t, first, retry)
				if i := first.informational; len(i) != 1 || i[0].status != 103 || i[0].header.Get("Link") != "</a>" {
					t.Errorf("informational responses %v, want a 103 with its Link", i)
				}
				if first.header.Get("Link") != "" {
					t.Error("a field of the informational response is in the final one")
				}
			},
		},
		"trailers": {
			adaptertest.Program{Body: "a", Trailers: []adaptertest.Pair{{"X-T", "1"}}},
			func(t *testing.T, first, retry answer) {
				t.Helper()
				both(http.StatusOK, "a")(t, first, retry)
				if got := first.trailer.Get("X-T"); got != "1" {
					t.Errorf("trailer X-T is %q, want 1", got)
				}
			},
		},
		"panic":        {adaptertest.Program{Behaviour: adaptertest.Panics}, cutShort("")},
		"panic-half":   {adaptertest.Program{Behaviour: adaptertest.Panics, BodySize: 2000}, cutShort("")},
		"abort":        {adaptertest.Program{Behaviour: adaptertest.Aborts}, cutShort("")},
		"abort-stream": {adaptertest.Program{Behaviour: adaptertest.Aborts, Chunks: []adaptertest.Chunk{{Body: "ab"}}}, cutShort("a")},
		"panic-stream": {adaptertest.Program{Behaviour: adaptertest.Panics, Chunks: []adaptertest.Chunk{{Body: "a"}, {Body: "b"}}}, cutShort("a")},
		"error": {
			adaptertest.Program{Behaviour: adaptertest.Fails, Status: 404},
			func(t *testing.T, first, retry answer) {
				t.Helper()
				both(http.StatusNotFound, "Not Found\n")(t, first, retry)
			},
		},
		"error-500": {
			adaptertest.Program{Behaviour: adaptertest.Fails},
			func(t *testing.T, first, retry answer) {
				t.Helper()
				first.want(t, http.StatusInternalServerError).wantRun(t, "1")
				retry.want(t, http.StatusInternalServerError).wantRun(t, "2")
			},
		},
		"hijack": {
			adaptertest.Program{Behaviour: adaptertest.Hijacks, Body: "own", Headers: []adaptertest.Pair{{"X-A", "1"}}},
			func(t *testing.T, first, retry answer) {
				t.Helper()
				first.want(t, http.StatusOK).wantRun(t, "1")
				retry.want(t, http.StatusOK).wantRun(t, "2")
				if first.body != "own" || first.header.Get("X-A") != "1" || first.header.Get("Date") != "" {
					t.Errorf("%q with %v, want the handler's own bytes", first.body, first.header)
				}
			},
		},
		"keep": {
			adaptertest.Program{Status: 500, Keep: true},
			both(http.StatusInternalServerError, ""),
		},
		"release": {
			adaptertest.Program{Release: true},
			func(t *testing.T, first, retry answer) {
				t.Helper()
				first.want(t, http.StatusOK).wantRun(t, "1")
				retry.want(t, http.StatusOK).wantRun(t, "2")
			},
		},
		"no-body": {
			adaptertest.Program{Body: "secret", NoBody: true},
			func(t *testing.T, first, retry answer) {
				t.Helper()
				if first.want(t, http.StatusOK).body != "secret" || retry.want(t, http.StatusOK).header.Get("Idempotency-Body") != "omitted" {
					t.Errorf("first %q, retry %q with %v, want the body once", first.body, retry.body, retry.header)
				}
			},
		},
		"effect-without-a-table": {adaptertest.Program{Effect: true, Body: "a"}, both(http.StatusOK, "a")},
	} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			m := message{target: "/t/program/" + op, key: op, program: &c.program}
			first := server.do(t, m)
			retry := server.do(t, m)
			// Who takes the connection answers before the exchange has ended, so the retry may
			// come too soon.
			for deadline := time.Now().Add(10 * time.Second); retry.status == http.StatusConflict && time.Now().Before(deadline); {
				retry = server.do(t, m)
			}
			c.check(t, first, retry)
		})
	}
}

// both is the check that the first response and its replay have that status and body.
func both(status int, body string) func(*testing.T, answer, answer) {
	return func(t *testing.T, first, retry answer) {
		t.Helper()
		for _, a := range []answer{first, retry} {
			if a.want(t, status).wantRun(t, "1").body != body {
				t.Errorf("body %.100q, want %.100q", a.body, body)
			}
		}
		if first.header.Get("Idempotent-Replayed") != "" || retry.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("markers %q and %q, want it on the retry", first.header, retry.header)
		}
	}
}

// cutShort is the check that no response is whole, and that the retry ran again.
func cutShort(body string) func(*testing.T, answer, answer) {
	return func(t *testing.T, first, retry answer) {
		t.Helper()
		for i, a := range []answer{first, retry} {
			if a.err == nil || a.body != body {
				t.Errorf("answer %d: body %q, error %v, want the connection to end after %q", i, a.body, a.err, body)
			}
		}
	}
}

func TestWithoutAProgramTheResponseIsTheDefault(t *testing.T) {
	t.Parallel()
	server := start(t)
	a := server.do(t, message{target: "/t/plain"}).want(t, adaptertest.DefaultStatus).wantRun(t, "1")
	if a.body != adaptertest.DefaultBody || a.header.Get("Content-Type") != adaptertest.DefaultContentType {
		t.Errorf("%q with %v, want the default answer", a.body, a.header)
	}
	server.do(t, message{target: "/t/plain"}).wantRun(t, "2")
	server.do(t, message{target: "/t/other/plain"}).wantRun(t, "1")
	if executions, inFlight := server.counts(t, "plain"); executions != 2 || inFlight != 0 {
		t.Errorf("%d executions and %d in flight, want 2 and 0", executions, inFlight)
	}
	if executions, _ := server.counts(t, "never"); executions != 0 {
		t.Errorf("%d executions of what never ran, want 0", executions)
	}
}

func TestInvalidProgramIsRefusedAndLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	server := start(t)
	m := message{target: "/t/bad", key: "k", fields: []string{adaptertest.ProgramHeader + `: {"stauts":1}`}}
	if a := server.do(t, m).want(t, http.StatusBadRequest); !strings.Contains(a.body, `unknown field "stauts"`) {
		t.Errorf("%q, want the reason", a.body)
	}
	m.fields = nil
	server.do(t, m).want(t, adaptertest.DefaultStatus).wantRun(t, "1")
}

func TestEchoReportsTheRequestOfTheHandler(t *testing.T) {
	t.Parallel()
	server := start(t)
	m := message{method: http.MethodPatch, target: "/t/a%2Fb/c?q=%20&r", key: "k", program: &adaptertest.Program{Echo: true}, body: "abc"}
	e := server.do(t, m).want(t, http.StatusOK).echo(t)
	want := adaptertest.Echo{
		Method: "PATCH", RawPath: "/t/a%2Fb/c", RawQuery: "q=%20&r", BodyLength: 3, Attempt: 1, Fence: e.Fence,
		BodySHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
	}
	if e != want || e.Fence == 0 {
		t.Errorf("got %+v\nwant %+v", e, want)
	}
	if executions, _ := server.counts(t, "a%2Fb/c"); executions != 1 {
		t.Errorf("%d executions, want the op as it was sent to be counted", executions)
	}
	m.key = ""
	if e := server.do(t, m).echo(t); e.Attempt != 0 || e.Fence != 0 {
		t.Errorf("attempt %d and fence %d without a key, want none", e.Attempt, e.Fence)
	}
}

func TestDelayEndsWithTheContextUnlessIgnored(t *testing.T) {
	t.Parallel()
	server := start(t)
	for op, ignore := range map[string]bool{"gives-up": false, "works-on": true} {
		// Without a key the context is the client's.
		conn := server.send(t, message{target: "/t/" + op, program: &adaptertest.Program{DelayMS: 3000, IgnoreCtx: ignore}})
		server.running(t, op)
		conn.Close()
	}
	eventually(t, "the handler gives up", func() bool {
		_, inFlight := server.counts(t, "gives-up")
		return inFlight == 0
	})
	if _, inFlight := server.counts(t, "works-on"); inFlight != 1 {
		t.Error("the handler that ignores its context gave up")
	}
}

func TestTenantIsTheScope(t *testing.T) {
	t.Parallel()
	server := start(t)
	m := message{target: "/t/tenant", key: "k"}
	server.do(t, m).wantRun(t, "1")
	m.fields = []string{adaptertest.TenantHeader + ": a"}
	server.do(t, m).wantRun(t, "2")
	m.fields = []string{adaptertest.TenantHeader + ": " + adaptertest.DefaultTenant}
	server.do(t, m).wantRun(t, "1")
	m.fields = []string{adaptertest.TenantHeader + ":"}
	server.do(t, m).wantCode(t, http.StatusForbidden, "scope-missing")
}

func TestUnroutedPathsAreBehindTheMiddleware(t *testing.T) {
	t.Parallel()
	server := start(t)
	m := message{target: "/u/x/y", key: "k"}
	server.do(t, m).want(t, http.StatusNotFound)
	if a := server.do(t, m).want(t, http.StatusNotFound); a.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%v, want a replay of the 404", a.header)
	}
	server.do(t, message{method: http.MethodGet, target: "/healthz"}).want(t, http.StatusOK)
}
