// Command suite runs the tests of packages with the race detector, and summarizes the
// run: how many tests ran, on which servers, the skipped ones with reasons, and the time:
//
//	suite -name "make test" -servers redis,postgres -short ./core/... ./lab/...
//
// With -short, a test that repeats others for breadth skips itself with a reason that
// starts with [breadth]; the last line counts these as left to make check. It exits with
// 1 if a test failed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"
)

func main() {
	name := flag.String("name", "go test", "the command that the last line names")
	servers := flag.String("servers", "", "the servers of the last line, separated by commas")
	short := flag.Bool("short", false, "leave out what repeats other tests for breadth")
	flag.Parse()
	began := time.Now()
	r, err := run(context.Background(), os.Stdout, *short, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
	fmt.Print(r.summary(*name, *servers, time.Since(began)))
	if r.failed() {
		os.Exit(1)
	}
}

// run runs the tests of packages and prints to out as they end. One package more than
// there are cores runs at once, because some wait for their servers most of the time. The
// targets lint and isolated vet the code.
func run(ctx context.Context, out io.Writer, short bool, packages []string) (*report, error) {
	args := append([]string{
		"test", "-json", "-race", "-vet=off", "-short=" + strconv.FormatBool(short), "-timeout", "20m", "-p", strconv.Itoa(runtime.NumCPU() + 1),
	}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	r := newReport(out)
	if err := r.read(events); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil && !r.failed() {
		return nil, fmt.Errorf("go test: %w", err)
	}
	return r, nil
}
