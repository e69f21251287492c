package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// breadth is in the output of each test that -short skips or shortens.
const breadth = "make check runs "

// root is the path that every module of the project starts with.
const root = "github.com/reprise-go/reprise/"

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output string }

// report is the result of a run.
type report struct {
	out      io.Writer
	buffers  map[string]map[string]string // the output by package and test, until the end of each
	tests    int
	packages int
	failures []string
	left     left
	skips    map[string]int // by their reason, without the tests that are left
}

func newReport(out io.Writer) *report {
	return &report{out: out, buffers: map[string]map[string]string{}, left: left{}, skips: map[string]int{}}
}

func (r *report) failed() bool { return len(r.failures) > 0 }

// read reads the events. It prints a line for each package, and the output of failures.
func (r *report) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			e = event{Action: "build-output", Output: line} // of the go command itself
		}
		r.take(e)
	}
}

func (r *report) take(e event) {
	buffer := r.buffers[e.Package]
	if buffer == nil {
		buffer = map[string]string{}
		r.buffers[e.Package] = buffer
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		return
	case "output":
		buffer[e.Test] += e.Output
		if e.Test != "" && strings.Contains(e.Output, breadth) {
			r.left.add(e.Package, e.Test)
		}
		return
	case "skip":
		if reason := reasonOf(buffer[e.Test]); e.Test != "" && !strings.Contains(reason, breadth) {
			r.skips[reason]++
		}
	case "pass":
		if e.Test == "" {
			r.packages++
			lines := strings.Split(strings.TrimSpace(buffer[""]), "\n")
			fmt.Fprintln(r.out, lines[len(lines)-1])
		} else {
			r.tests++
		}
	case "fail":
		r.failures = append(r.failures, strings.TrimSuffix(e.Package+" "+e.Test, " "))
		for _, test := range slices.Sorted(maps.Keys(buffer)) {
			if test == e.Test || e.Test == "" { // of tests that did not end, too
				fmt.Fprint(r.out, buffer[test])
			}
		}
	default:
		return
	}
	delete(buffer, e.Test)
	if e.Test == "" {
		delete(r.buffers, e.Package)
	}
}

// position begins a line of t.Log or t.Skip.
var position = regexp.MustCompile(`^\s+\S+_test\.go:\d+: |^\s+\S+\.go:\d+: `)

// reasonOf returns the last line that a skipped test logged.
func reasonOf(output string) string {
	reason := "no reason given"
	for line := range strings.Lines(output) {
		if at := position.FindString(line); at != "" {
			reason = strings.TrimSpace(line[len(at):])
		}
	}
	return reason
}

// summary says what ran. Its last line is that of the whole run.
func (r *report) summary(name, servers string, took time.Duration) string {
	var b strings.Builder
	for _, reason := range slices.Sorted(maps.Keys(r.skips)) {
		fmt.Fprintf(&b, "skipped %d: %s\n", r.skips[reason], reason)
	}
	for _, failure := range r.failures {
		fmt.Fprintf(&b, "failed: %s\n", strings.TrimPrefix(failure, root))
	}
	fmt.Fprintf(&b, "%s: %d tests of %d packages passed in %v", name, r.tests, r.packages, took.Round(time.Second))
	if servers != "" {
		fmt.Fprintf(&b, ", on %s", strings.ReplaceAll(servers, ",", ", "))
	}
	if r.failed() {
		fmt.Fprintf(&b, "; %d failed", len(r.failures))
	}
	if n := r.left.tests(); n > 0 {
		fmt.Fprintf(&b, "; make check runs %d more, or in full", n)
	}
	return b.String() + "\n"
}

// left has the tests that -short skipped or shortened, by their package.
type left map[string][]string

func (l left) add(pkg, test string) {
	if !slices.Contains(l[pkg], test) {
		l[pkg] = append(l[pkg], test)
	}
}

func (l left) tests() (n int) {
	for _, tests := range l {
		n += len(tests)
	}
	return n
}

func (l left) packages() []string { return slices.Sorted(maps.Keys(l)) }

// pattern selects the tests, for the flag -run.
func (l left) pattern() string {
	var patterns []string
	for _, pkg := range l.packages() {
		for _, test := range l[pkg] {
			names := strings.Split(test, "/")
			for i, name := range names {
				names[i] = "^" + regexp.QuoteMeta(name) + "$"
			}
			patterns = append(patterns, strings.Join(names, "/"))
		}
	}
	slices.Sort(patterns)
	return strings.Join(slices.Compact(patterns), "|")
}
