package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
)

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

func TestEachLayerFlagTakesEffect(t *testing.T) {
	t.Parallel()
	runFlags(t, map[string]flagCase{
		"no outer-body": {"", func(t *testing.T, server *process) {
			t.Helper()
			server.wantLeft(t, isJSON, twoValues, len(twoValues), 200)
			server.wantLeft(t, isForm, "a=1", 3, 200)
		}},
		"outer-body drain": {"-outer-body drain", func(t *testing.T, server *process) {
			t.Helper()
			server.wantLeft(t, isJSON, twoValues, 0, 400)
			server.wantLeft(t, isForm, "a=1", 0, 400)
		}},
		"outer-body bind": {"-outer-body bind", func(t *testing.T, server *process) {
			t.Helper()
			server.wantLeft(t, isJSON, twoValues, len(twoValues), 200)
			server.wantLeft(t, isForm, "a=1", 0, 200)
			server.do(t, message{target: "/t/x", key: "a=1", fields: isForm, body: "a=1"}).want(t, 201).wantRun(t, "4")
			server.do(t, message{target: "/t/x", key: "a=1", fields: isForm, body: "a=2"}).wantCode(t, 422, "key-reused")
		}},
		"outer-body json": {"-outer-body json", func(t *testing.T, server *process) {
			t.Helper()
			server.wantLeft(t, isJSON, twoValues, len(twoValues)-512, 400) // the decoder reads that much
			server.wantLeft(t, isForm, "a=1", 0, 400)
		}},
		"inner recoverable":  {"-inner recoverable -fail-open", wantNested},
		"inner at-most-once": {"-inner at-most-once", wantNested},
	})
}

var (
	isForm    = []string{"Content-Type: application/x-www-form-urlencoded"}
	twoValues = `{"a":1}` + strings.Repeat(" ", 1000) + `{"a":2}`
)

// wantLeft demands that a layer outside leaves that much of a body to the handler of a
// request without a key, and the status of a request whose key is the body's beginning.
func (p *process) wantLeft(t *testing.T, fields []string, body string, left, status int) {
	t.Helper()
	m := message{target: "/t/x", fields: fields, body: body, program: &adaptertest.Program{Echo: true}}
	if e := p.do(t, m).want(t, http.StatusOK).echo(t); e.BodyLength != left {
		t.Errorf("the handler reads %d of %d bytes, want %d", e.BodyLength, len(body), left)
	}
	m.key, m.program = body[:3], nil
	if status == http.StatusBadRequest {
		p.do(t, m).wantCode(t, status, "request-invalid")
	} else {
		p.do(t, m).want(t, http.StatusCreated)
	}
}

// wantNested demands that a guard inside of another refuses a request with a key, and
// that the log names it.
func wantNested(t *testing.T, server *process) {
	t.Helper()
	for range 2 {
		server.do(t, message{target: "/t/x", key: "k"}).wantCode(t, 500, "internal-error")
	}
	server.do(t, message{target: "/t/x"}).want(t, 201).wantRun(t, "1")
	eventually(t, "the log names the guard", func() bool { return strings.Contains(server.stderr.String(), `guard \"inner\" is inside of`) })
}
