// Package program tests the operator's program (cmd/reprise) as a process: built as a
// user builds it, on real servers, and in a pseudo-terminal.
package program

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // they wait for programs and servers; one on the command line has precedence
	dir, err := os.MkdirTemp("", "reprise-program-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs = dir
	labtest.Main(tidied{m, dir})
}

// tidied are tests after which a folder goes. labtest.Main ends the process, so a
// deferred call beside it never runs.
type tidied struct {
	*testing.M

	folder string
}

func (t tidied) Run() int {
	defer os.RemoveAll(t.folder)
	return t.M.Run()
}

// programs is the folder of the built program.
var programs string

// build builds the program once, with the race detector if these tests have it.
var build = sync.OnceValues(func() (string, error) {
	target := filepath.Join(programs, "reprise")
	args := []string{"build", "-o", target}
	if labtest.RaceEnabled {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Dir = filepath.Join("..", "..", "cmd", "reprise")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out.Bytes())
	}
	return target, nil
})

// program returns the path of the program.
func program(tb testing.TB) string {
	tb.Helper()
	path, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}
