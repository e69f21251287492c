package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// breadth starts the reason of a test that -short skips.
const breadth = "left to make nightly: "

// final is what a failed package prints that is not run again: a seed, which reproduces
// the failure, an input of a fuzz target, a panic, also that of a test that hangs, and a
// data race. Neither is a package that does not compile, or that go vet refuses.
var final = regexp.MustCompile(`(?im)seed[ =#]+\d|^\s*--- FAIL: Fuzz|^(panic|fatal error): |^WARNING: DATA RACE`)

// most is how many packages of a run may be flaky; .ci/run has the same limit.
const most = 2

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output, FailedBuild string }

// result is what became of a package.
type result struct {
	name    string
	outputs map[string]string // by the test, until its end
	printed strings.Builder   // the outputs of failures
	passed  int
	failed  []string // tests
	skipped []string // reasons
}

// report is the result of a run.
type report struct {
	out      io.Writer
	running  map[string]*result
	again    []*result // the packages that are run once more
	alone    *result   // the one of these that runs
	flaky    []string  // packages with their tests
	failures []string
	passed   int
	packages int
	skips    map[string]int // by their reason
}

// ok reports whether the run is green.
func (r *report) ok() bool { return len(r.failures) == 0 && len(r.flaky) <= most }

func newReport(out io.Writer) *report {
	return &report{out: out, running: map[string]*result{}, skips: map[string]int{}}
}

// read reads the events until they end. It prints a line for each package, and the output
// of failures.
func (r *report) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				e = event{Action: "build-output", Output: line} // of the go command itself
			}
			r.take(e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (r *report) take(e event) {
	p := r.running[e.Package]
	if p == nil {
		p = &result{name: e.Package, outputs: map[string]string{}}
		r.running[e.Package] = p
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		p.outputs[e.Test] += e.Output
	case "pass", "fail", "skip":
		if e.Test != "" {
			p.end(e)
		} else {
			delete(r.running, e.Package)
			r.end(p, e)
		}
	}
}

// end takes the end of a test.
func (p *result) end(e event) {
	output := p.outputs[e.Test]
	delete(p.outputs, e.Test)
	switch e.Action {
	case "pass":
		p.passed++
	case "skip":
		p.skipped = append(p.skipped, reasonOf(output))
	case "fail":
		p.failed = append(p.failed, e.Test)
		p.printed.WriteString(output)
	}
}

// end takes the end of a package. One that is run again counts then.
func (r *report) end(p *result, e event) {
	switch e.Action {
	case "fail":
		for _, test := range slices.Backward(slices.Sorted(maps.Keys(p.outputs))) { // of tests that did not end, and then its own
			p.printed.WriteString(p.outputs[test])
		}
		printed := p.printed.String()
		if r.alone == nil && e.FailedBuild == "" && !final.MatchString(printed) {
			r.again = append(r.again, p)
			fmt.Fprintf(r.out, "to be run again: %s\n\t%s\n", p.name, strings.ReplaceAll(strings.TrimSpace(printed), "\n", "\n\t"))
			return
		}
		fmt.Fprint(r.out, printed)
		if len(p.failed) == 0 {
			p.failed = []string{""}
		}
		for _, test := range p.failed {
			r.failures = append(r.failures, strings.TrimSpace(short(p.name)+" "+test))
		}
	case "pass":
		lines := strings.Split(strings.TrimSpace(p.outputs[""]), "\n")
		fmt.Fprintln(r.out, lines[len(lines)-1])
		if r.alone != nil {
			r.flaky = append(r.flaky, fmt.Sprintf("%s (%s)", short(p.name), cmp.Or(strings.Join(r.alone.failed, ", "), "none of its tests")))
		}
	default: // it has no tests
		return
	}
	r.packages++
	r.passed += p.passed
	for _, reason := range p.skipped {
		r.skips[reason]++
	}
}

// record adds the flaky packages to a file.
func (r *report) record(file string) error {
	if file == "" || len(r.flaky) == 0 {
		return nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, strings.Join(r.flaky, "\n"))
	return errors.Join(err, f.Close())
}

func short(name string) string { return strings.TrimPrefix(name, "github.com/reprise-go/reprise/") }

// logged is a line of t.Log or t.Skip, with its text.
var logged = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.*)$`)

// reasonOf returns the last text that a skipped test logged.
func reasonOf(output string) string {
	lines := logged.FindAllStringSubmatch(output, -1)
	if len(lines) == 0 {
		return "no reason given"
	}
	return lines[len(lines)-1][1]
}

// summary returns the summary of a run; its last line is that of the whole run.
func (r *report) summary(name, servers string, took time.Duration) string {
	var b strings.Builder
	var left []string
	skipped := 0
	for _, reason := range slices.Sorted(maps.Keys(r.skips)) {
		skipped += r.skips[reason]
		if text, ok := strings.CutPrefix(reason, breadth); ok {
			left = append(left, fmt.Sprintf("%d %s", r.skips[reason], text))
		} else {
			fmt.Fprintf(&b, "skipped %d: %s\n", r.skips[reason], reason)
		}
	}
	for _, failure := range r.failures {
		fmt.Fprintf(&b, "failed: %s\n", failure)
	}
	if len(r.flaky) > 0 {
		fmt.Fprintf(&b, "flaky: %s\n", strings.Join(r.flaky, ", "))
	}
	if len(r.flaky) > most {
		fmt.Fprintf(&b, "failed: at most %d packages may be flaky\n", most)
	}
	fmt.Fprintf(&b, "%s: %d passed, %d failed, %d skipped, of %d packages in %v on %s; left to make nightly: %s\n",
		name, r.passed, len(r.failures), skipped, r.packages, took.Round(time.Second),
		cmp.Or(strings.ReplaceAll(servers, ",", ", "), "no servers"), cmp.Or(strings.Join(left, ", "), "nothing"))
	return b.String()
}
