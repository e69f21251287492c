package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/lab/serve"
)

// A test server that was built without a framework says so, and does not call its name
// unknown.
func TestALeftOutAdapterIsRefusedByItsBuildTag(t *testing.T) {
	t.Parallel()
	var tags []string
	frameworks := append(serve.Adapters(), serve.LeftOut()...)
	for _, name := range frameworks {
		tags = append(tags, "without_"+name)
	}
	program := filepath.Join(t.TempDir(), "testserver")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", strings.Join(tags, ","), "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range frameworks {
		if name == "nethttp" {
			continue // the standard library's is always there
		}
		out, err := exec.CommandContext(t.Context(), program, "-adapter", name).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "build tag without_"+name) {
			t.Errorf("-adapter %s ended with %v, want 2 and the name of the build tag:\n%s", name, err, out)
		}
	}
	out, err := exec.CommandContext(t.Context(), program, "-adapter", "nothing").CombinedOutput()
	if err == nil || strings.Contains(string(out), "build tag") || !strings.Contains(string(out), "want one of nethttp") {
		t.Errorf("an unknown adapter ended with %v:\n%s", err, out)
	}
}
