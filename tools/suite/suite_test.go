package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

const tests = `package p

import "testing"

func TestPasses(t *testing.T) { t.Run("part", func(*testing.T) {}) }

func TestRepeats(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make check: long histories")
	}
}

func TestWithoutServer(t *testing.T) { t.Log("first"); t.Skip("no valkey") }
`

func TestLastLineSaysWhatRanAndWhatIsLeft(t *testing.T) {
	// The program runs in the folder of the workspace.
	dir := tree.Small(t, map[string]string{"go.mod": "module p\n\ngo 1.26.0\n", "p_test.go": tests})
	t.Chdir(dir)
	for _, row := range []struct {
		name  string
		short bool
		more  string
		want  string
	}{
		{"short", true, "", "skipped 1: no valkey\nmake it: 2 tests of 1 packages passed in 3s on redis, postgres; left to make check: 1 long histories\n"},
		{"full", false, "", "skipped 1: no valkey\nmake it: 3 tests of 1 packages passed in 3s on redis, postgres; left to make check: nothing\n"},
		{
			"failure", false, "func TestFails(t *testing.T) { t.Error(\"always\") }\n",
			"skipped 1: no valkey\nfailed: p TestFails\nmake it: 3 tests of 0 packages passed and 1 failed in 3s on redis, postgres; left to make check: nothing\n",
		},
	} {
		tree.Write(t, dir, "p_test.go", tests+row.more)
		var out bytes.Buffer
		r, err := run(t.Context(), &out, row.short, []string{"./..."})
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		if got := r.summary("make it", "redis,postgres", 3*time.Second); got != row.want || r.failed() != (row.more != "") {
			t.Errorf("%s: failed %t, summary %q, want %q", row.name, r.failed(), got, row.want)
		}
		if row.more != "" && !strings.Contains(out.String(), "always") || row.more == "" && !strings.HasPrefix(out.String(), "ok  \tp\t") {
			t.Errorf("%s: printed\n%s", row.name, out.String())
		}
	}
}

func TestPackageThatDoesNotCompileFailsTheRun(t *testing.T) {
	dir := tree.Small(t, map[string]string{"go.mod": "module p\n\ngo 1.26.0\n", "p_test.go": "package p\n\nvar _ int = Missing\n"})
	t.Chdir(dir)
	var out bytes.Buffer
	r, err := run(t.Context(), &out, true, []string{"./..."})
	if err == nil && !r.failed() || !strings.Contains(out.String(), "undefined: Missing") {
		t.Errorf("run: %v, printed\n%s", err, out.String())
	}
}
