package main

import (
	"bufio"
	"cmp"
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

// breadth starts the reason of a test that -short skips.
const breadth = "left to make check: "

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output string }

// report is the result of a run.
type report struct {
	out      io.Writer
	buffers  map[string]map[string]string // the output by package and test, until the end of each
	tests    int
	packages int
	failures []string
	skips    map[string]int // by their reason
}

func newReport(out io.Writer) *report {
	return &report{out: out, buffers: map[string]map[string]string{}, skips: map[string]int{}}
}

func (r *report) failed() bool { return len(r.failures) > 0 }

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
		return
	case "skip":
		if e.Test != "" { // not a package without tests
			r.skips[reasonOf(buffer[e.Test])]++
		}
	case "pass":
		if e.Test != "" {
			r.tests++
			break
		}
		r.packages++
		lines := strings.Split(strings.TrimSpace(buffer[""]), "\n")
		fmt.Fprintln(r.out, lines[len(lines)-1])
	case "fail":
		if e.Test != "" || !slices.ContainsFunc(r.failures, func(f string) bool { return strings.HasPrefix(f, e.Package+" ") }) {
			r.failures = append(r.failures, strings.TrimSuffix(e.Package+" "+e.Test, " "))
		}
		for _, test := range slices.Sorted(maps.Keys(buffer)) {
			if test == e.Test || e.Test == "" { // a package also fails with tests that did not end
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
	for _, reason := range slices.Sorted(maps.Keys(r.skips)) {
		if text, ok := strings.CutPrefix(reason, breadth); ok {
			left = append(left, fmt.Sprintf("%d %s", r.skips[reason], text))
		} else {
			fmt.Fprintf(&b, "skipped %d: %s\n", r.skips[reason], reason)
		}
	}
	for _, failure := range r.failures {
		fmt.Fprintf(&b, "failed: %s\n", strings.TrimPrefix(failure, "github.com/reprise-go/reprise/"))
	}
	fmt.Fprintf(&b, "%s: %d tests of %d packages passed", name, r.tests, r.packages)
	if r.failed() {
		fmt.Fprintf(&b, " and %d failed", len(r.failures))
	}
	fmt.Fprintf(&b, " in %v on %s; left to make check: %s\n", took.Round(time.Second),
		cmp.Or(strings.ReplaceAll(servers, ",", ", "), "no servers"), cmp.Or(strings.Join(left, ", "), "nothing"))
	return b.String()
}
