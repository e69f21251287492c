package program

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// TestConsole: the command serves the pages to anyone who has the address, and ends with
// a signal.
func TestConsole(t *testing.T) {
	t.Parallel()
	f := servedBy["redis"](t)
	ids := f.seed(t)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program(t), "console")
	cmd.Env, cmd.Stderr = append(os.Environ(), f.env...), t.Output()
	stdout, err := cmd.StdoutPipe()
	labtest.Must(t, err)
	labtest.Must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	var address string
	for lines := bufio.NewScanner(stdout); address == "" && lines.Scan(); {
		if found, ok := strings.CutPrefix(lines.Text(), "at "); ok {
			address = found
		}
	}
	root, ok := strings.CutPrefix(address, "http://127.0.0.1:")
	port, secret, _ := strings.Cut(root, "/")
	if !ok || len(secret) < 20 {
		t.Fatalf("the address is %q", address)
	}
	if status, body := get(t, address, ""); status != http.StatusOK || !strings.Contains(body, ids["LAPSED2"].Short()) {
		t.Errorf("the page is %d:\n%s", status, body)
	}
	if status, _ := get(t, "http://127.0.0.1:"+port+"/", ""); status != http.StatusNotFound {
		t.Errorf("without the secret part of the path: %d, want 404", status)
	}
	if status, body := get(t, address, "rebound.example"); status < 400 || strings.Contains(body, ids["LAPSED2"].Short()) {
		t.Errorf("for another host: %d", status)
	}
	labtest.Must(t, cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
