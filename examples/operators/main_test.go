package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/lab/servers"
)

func TestMain(m *testing.M) { os.Exit(servers.Main{M: m}.Run()) }

// The demo checks itself; this is that it does so on a Redis of its own and on another's.
func TestDemo(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "operators")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for what, arguments := range map[string][]string{
		"its own Redis": {"-demo"},
		"a Redis":       {"-demo", "-prefix", "operators-test:", "-redis-url", "redis://" + servers.Redis.Shared(t).Addr()},
	} {
		out, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("The order was not run a second time.")) {
			t.Errorf("%s: %v: %s", what, err, out)
		}
	}
	out, err := exec.CommandContext(t.Context(), program, "-redis-url", "redis://127.0.0.1:1").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "operators: reprise: store unreachable") {
		t.Errorf("without a server: %v: %s", err, out)
	}
}
