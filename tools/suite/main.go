// Command suite runs go test. A package that failed is run once more, alone, after the
// others have ended. If it passes then, it is flaky: it is named, and the run may be
// green. Where the machine cannot be the reason, there is
// no second run: see [final]. The last line counts the tests, and the lines above it give
// the reasons of skipped ones:
//
//	suite "make test" -race -short ./core/... ./lab/...
//
// The first argument is the name in the last line. Those that start with a dash are flags
// of go test, each with its value behind an equals sign, and the others are packages. A
// skipped test whose reason starts with [breadth] is counted as left to make nightly.
//
// The environment names the servers of the last line (REPRISE_TEST_REQUIRE), and a file
// to which flaky packages are added, a line each (REPRISE_FLAKY). It exits with 1 if a
// test failed, or if more than [most] packages are flaky.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: suite NAME [FLAG…] PACKAGE…")
		os.Exit(2)
	}
	began := time.Now()
	r := newReport(os.Stdout)
	err := r.run(context.Background(), os.Args[2:])
	if err == nil {
		err = r.record(os.Getenv("REPRISE_FLAKY"))
	}
	fmt.Print(r.summary(os.Args[1], os.Getenv("REPRISE_TEST_REQUIRE"), time.Since(began)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
	}
	if err != nil || !r.ok() {
		os.Exit(1)
	}
}

// run runs the tests and prints to r.out as packages end. What is run again has the
// machine for itself, as far as other runs of this program go.
func (r *report) run(ctx context.Context, args []string) error {
	var flags, packages []string
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			flags = append(flags, arg)
		} else {
			packages = append(packages, arg)
		}
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	others, err := os.OpenFile(program+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = others.Close() }()
	if err := flock(others, syscall.LOCK_SH); err != nil {
		return err
	}
	if err := r.test(ctx, flags, packages...); err != nil {
		return err
	}
	if len(r.again) == 0 {
		return nil
	}
	if err := errors.Join(flock(others, syscall.LOCK_UN), flock(others, syscall.LOCK_EX)); err != nil {
		return err
	}
	slices.SortFunc(r.again, func(a, b *result) int { return strings.Compare(a.name, b.name) })
	for _, p := range r.again {
		fmt.Fprintf(r.out, "again, alone: %s\n", p.name)
		r.alone = p
		if err := r.test(ctx, flags, p.name); err != nil {
			return err
		}
	}
	return nil
}

func flock(file *os.File, how int) error {
	for {
		if err := syscall.Flock(int(file.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// test runs go test once. One package more than there are cores runs at once, because
// some wait for their servers most of the time.
func (r *report) test(ctx context.Context, flags []string, packages ...string) error {
	before := len(r.failures) + len(r.again)
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-json", fmt.Sprintf("-p=%d", runtime.NumCPU()+1)}, flags, packages)...) //nolint:gosec // of the Makefile
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	if err := r.read(events); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil && len(r.failures)+len(r.again) == before {
		return fmt.Errorf("go test: %w", err)
	}
	return nil
}
