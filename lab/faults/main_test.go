// Package faults_test runs real servers behind retrying clients and breaks everything
// around them: processes are killed and stopped at named points, links between clients,
// servers and stores lose, cut, hold and delay bytes, and the stores' own servers crash,
// fail over and refuse. A checker compares the clients' responses, the handlers' effects
// and the servers' histories with the guarantees of docs/reference/semantics.md.
//
// A seed fixes the faults and their order, but not their timing. The program under test
// is lab/nethttp/testserver, built with the tag reprise_faults, which adds the points and
// a history and is in no other build.
package faults_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	environment "github.com/reprise-go/reprise/lab/internal/setting"
)

// page is where a soak writes its figures.
var page = flag.String("page", "", "write the figures of the run into this `file`")

// The program under test and its builds.
var program struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "16") // they wait, for servers and leases; one on the command line has precedence
	flag.Parse()
	labtest.Main(m, func() { _ = os.RemoveAll(program.dir) })
}

// binary returns the path of the program under test.
func binary(tb testing.TB) string {
	tb.Helper()
	program.once.Do(func() {
		program.dir, program.err = os.MkdirTemp("", "reprise-faults-") //nolint:usetesting // it outlives the test that comes first
		if program.err == nil {
			program.err = build(program.dir + "/testserver")
		}
	})
	if program.err != nil {
		tb.Fatal(program.err)
	}
	return program.dir + "/testserver"
}

// build builds the test server, with the race detector where this test has it.
func build(path string) error {
	args := []string{"build", "-buildvcs=false", "-tags", "reprise_faults", "-o", path}
	if labtest.RaceEnabled {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, ".")...) //nolint:noctx // the tests share it
	cmd.Dir = filepath.Join("..", "nethttp", "testserver")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the test server: %w\n%s", err, out)
	}
	return nil
}

// seed returns the seed of a run's faults.
func seed(tb testing.TB) uint64 {
	tb.Helper()
	return environment.Number(tb, "REPRISE_SEED", 15)
}

// random returns the source of random numbers of a part of the run.
func random(seed uint64, part string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(part))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
