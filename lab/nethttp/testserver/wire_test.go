package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
)

// message is a request, as it is written on a new connection.
type message struct {
	method  string // default POST
	target  string // path and query
	key     string // quoted; empty: none
	program *adaptertest.Program
	fields  []string // further lines, "Name: value"
	body    string
}

// answer is its response.
type answer struct {
	status int // 0: the connection ended before a whole header
	header http.Header
	body   string
	err    error // of reading the response
}

// send writes m and leaves the connection to the caller.
func (p *process) send(t *testing.T, m message) net.Conn {
	t.Helper()
	var b strings.Builder
	if m.method == "" {
		m.method = http.MethodPost
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n", m.method, m.target, len(m.body))
	if m.key != "" {
		fmt.Fprintf(&b, "Idempotency-Key: %q\r\n", m.key)
	}
	if m.program != nil {
		fmt.Fprintf(&b, "%s: %s\r\n", adaptertest.ProgramHeader, m.program.Header())
	}
	for _, f := range m.fields {
		b.WriteString(f + "\r\n")
	}
	b.WriteString("\r\n" + m.body)
	conn := dial(t, p.addr)
	if _, err := io.WriteString(conn, b.String()); err != nil {
		t.Fatal(err)
	}
	return conn
}

// do sends m and reads the response to its end.
func (p *process) do(t *testing.T, m message) answer {
	t.Helper()
	conn := p.send(t, m)
	defer conn.Close()
	return receive(conn, m.method)
}

// receive reads a response to a request of that method.
func receive(conn io.Reader, method string) (a answer) {
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		a.err = err
		return a
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(body), err}
}

// want fails the test unless the response has that status.
func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.status != status || a.err != nil {
		t.Fatalf("status %d, error %v, want %d\n%v\n%.300s", a.status, a.err, status, a.header, a.body)
	}
	return a
}

// wantRun fails the test unless the response came from the n-th run of its op, by a
// handler or as a replay.
func (a answer) wantRun(t *testing.T, n string) answer {
	t.Helper()
	if got := a.header.Get(adaptertest.ExecHeader); got != n {
		t.Fatalf("answer of run %q, want %q: status %d\n%.300s", got, n, a.status, a.body)
	}
	return a
}

// counts asks how many runs of an op there were, and how many have not ended.
func (p *process) counts(t *testing.T, op string) (executions, inFlight int) {
	t.Helper()
	var report struct {
		Executions int `json:"executions"`
		InFlight   int `json:"in_flight"`
	}
	a := p.do(t, message{method: http.MethodGet, target: "/executions/" + op}).want(t, http.StatusOK)
	if err := json.Unmarshal([]byte(a.body), &report); err != nil {
		t.Fatalf("%q: %v", a.body, err)
	}
	return report.Executions, report.InFlight
}

// running waits until a run of op is in flight.
func (p *process) running(t *testing.T, op string) {
	t.Helper()
	eventually(t, op+" runs", func() bool {
		_, inFlight := p.counts(t, op)
		return inFlight > 0
	})
}
