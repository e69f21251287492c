package program

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestExampleAnyLanguage kills the service of examples/any-language while it works on an
// order.
func TestExampleAnyLanguage(t *testing.T) {
	t.Parallel()
	need(t, "node")
	need(t, "bash")
	dir := t.TempDir()
	charges, listen := filepath.Join(dir, "charges"), servers.FreeAddr(t)
	_, port, _ := strings.Cut(servers.FreeAddr(t), ":")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "bash", filepath.Join("..", "..", "examples", "any-language", "start.sh"))
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program(t))+":"+os.Getenv("PATH"), "LISTEN="+listen, "PORT="+port, "CHARGES="+charges,
		"STORE=redis://"+servers.Redis.Shared(t).Addr(), "REPRISE_PREFIX="+labtest.RedisPrefix(), "DELAY=1000")
	var out log
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	url := "http://" + listen + "/orders"
	var first *result
	await(t, "the service", func() bool { // before it listens, a request is not sent
		first = post(t.Context(), nil, url, "order-1", "seat 1")
		return first.status == http.StatusCreated
	})
	if again := post(t.Context(), nil, url, "order-1", "seat 1"); !again.replayed() || !bytes.Equal(again.body, first.body) {
		t.Errorf("the retry: %+v", again)
	}

	lost := make(chan *result)
	go func() { lost <- post(t.Context(), nil, url, "order-2", "seat 2") }()
	charged := func() string {
		text, _ := os.ReadFile(charges)
		return string(text)
	}
	await(t, "the second charge", func() bool { return strings.Contains(charged(), "charges seat 2\n") })
	pid, _ := strconv.Atoi(regexp.MustCompile(`process (\d+) charges seat 2`).FindStringSubmatch(charged())[1])
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if r := <-lost; r.status != http.StatusBadGateway {
		t.Errorf("the order that was killed: %+v, want 502", r)
	}
	tries := 0
	await(t, "the service is back", func() bool { // with a new key each time: one may meet a connection that is about to break
		tries++
		return post(t.Context(), nil, url, "order-3-"+strconv.Itoa(tries), "seat 3").status == http.StatusCreated
	})
	if r := post(t.Context(), nil, url, "order-2", "seat 2"); !r.unknown() {
		t.Errorf("the retry of the order that was killed: %+v, want outcome-unknown", r)
	}
	if r := post(t.Context(), nil, url, "order-1", "seat 1"); !r.replayed() || !bytes.Equal(r.body, first.body) {
		t.Errorf("the retry of the first order: %+v", r)
	}
	for _, seat := range []string{"seat 1", "seat 2"} {
		if n := strings.Count(charged(), "charges "+seat+"\n"); n != 1 {
			t.Errorf("%s was charged %d times:\n%s%s", seat, n, charged(), &out)
		}
	}
}
