// Command suite runs go test and says at its end what ran, and what is left to "make
// check". Tests that repeat others for breadth skip or shorten themselves under -short, and
// say so with the words of [breadth]; the program writes down which these are, and -rest
// runs them whole:
//
//	suite -left .cache/left.json -- -race -short ./core/... ./lab/...
//	suite -left .cache/left.json -rest -- -race
//
// The packages run in parallel, one more than there are cores, because some wait for their
// servers most of the time. It exits with 1 if a test failed.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func main() {
	name := flag.String("name", "make test", "the `command` that the last line names")
	servers := flag.String("servers", "", "the servers of the last line")
	file := flag.String("left", "", "the `file` with the tests that are left")
	rest := flag.Bool("rest", false, "run the tests of that file, and no others")
	flag.Parse()
	began := time.Now()
	r, err := run(*file, *rest, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
	fmt.Print(r.summary(*name, *servers, time.Since(began)))
	if r.failed() {
		os.Exit(1)
	}
}

// run runs go test with args, which end in packages, or with the tests of the file.
func run(file string, rest bool, args []string) (*report, error) {
	args = append([]string{"test", "-json", "-p", strconv.Itoa(runtime.NumCPU() + 1)}, args...)
	r := newReport(os.Stdout)
	if rest {
		var known left
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &known)
		}
		if err != nil {
			return nil, fmt.Errorf("run make test first: %w", err)
		}
		if len(known) == 0 {
			return r, nil
		}
		args = append(append(args, "-run", known.pattern()), known.packages()...)
	}
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	if err := r.read(out); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil && !r.failed() {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	if rest || file == "" {
		return r, nil
	}
	text, err := json.MarshalIndent(r.left, "", "\t")
	if err != nil {
		return nil, err
	}
	return r, os.WriteFile(file, append(text, '\n'), 0o644)
}
