// Package console plays an hour on call: a shop and its bank, the alerts in Prometheus'
// own engine, the operator's program, and the console in Chromium as a person without a
// mouse uses it. It is a separate module, so that a dependency that a proxy refuses takes
// down only these tests.
package console

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// program builds the operator's program.
func program(t *testing.T) string {
	t.Helper()
	target := filepath.Join(t.TempDir(), "reprise")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", target, ".")
	cmd.Dir = filepath.Join("..", "..", "cmd", "reprise")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return target
}
