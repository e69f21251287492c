package program

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// forwarder is a process of "reprise proxy".
type forwarder struct {
	URL   string `json:"url"`
	Admin string `json:"admin_url"`

	cmd    *exec.Cmd
	stderr *log
	ended  chan struct{}
	err    error // of the process; read it after ended
}

// forward starts the proxy and waits until it serves.
func forward(tb testing.TB, env []string, args ...string) *forwarder {
	tb.Helper()
	f := &forwarder{stderr: new(log), ended: make(chan struct{})}
	f.cmd = exec.CommandContext(context.WithoutCancel(tb.Context()), program(tb), append([]string{"--json", "proxy"}, args...)...)
	f.cmd.Env, f.cmd.Stderr = append(os.Environ(), env...), f.stderr
	stdout, err := f.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := f.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	if err := json.NewDecoder(out).Decode(f); err != nil {
		_ = f.cmd.Wait()
		tb.Fatalf("the proxy did not start: %v\n%s", err, f.stderr)
	}
	go func() {
		defer close(f.ended)
		_, _ = io.Copy(io.Discard, out)
		f.err = f.cmd.Wait()
	}()
	tb.Cleanup(func() { f.signal(syscall.SIGKILL); <-f.ended })
	return f
}

func (f *forwarder) signal(s os.Signal) { _ = f.cmd.Process.Signal(s) }

// exits ends the proxy by a signal and returns its exit code.
func (f *forwarder) exits(s os.Signal) int {
	f.signal(s)
	<-f.ended
	if exit, ok := errors.AsType[*exec.ExitError](f.err); ok {
		return exit.ExitCode()
	}
	return 0
}

// log is the standard error of a process.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// result is a response, or the error in its place.
type result struct {
	status int
	proto  string
	header http.Header
	body   []byte
	err    error
}

// String shows the response to the reader of a failure.
func (r *result) String() string {
	return fmt.Sprintf("status %d, header %v, body %.200q, error %v", r.status, r.header, r.body, r.err)
}

func (r *result) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

func (r *result) unknown() bool {
	return r.status == http.StatusConflict && bytes.Contains(r.body, []byte("outcome-unknown"))
}

// post sends a request with a key, over a new connection unless client is set.
func post(ctx context.Context, client *http.Client, url, key, body string) *result {
	if client == nil {
		client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return &result{err: err}
	}
	req.Header.Set("Authorization", "Bearer alice")
	if key != "" {
		req.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	resp, err := client.Do(req)
	if err != nil {
		return &result{err: err}
	}
	defer resp.Body.Close()
	r := &result{status: resp.StatusCode, proto: resp.Proto, header: resp.Header}
	r.body, r.err = io.ReadAll(resp.Body)
	return r
}

// await polls until the condition holds.
func await(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatalf("waited for a minute: %s", what)
		}
	}
}

// awaitRefusal waits until connections are refused. The kernel may accept some after a
// listener was closed.
func awaitRefusal(tb testing.TB, address string) {
	tb.Helper()
	await(tb, "no more connections", func() bool {
		conn, err := (&net.Dialer{}).DialContext(tb.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}
