package faults_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

const (
	pageBegin = "<!-- made by make soak; do not edit below -->\n"
	pageEnd   = "<!-- made by make soak; do not edit above -->\n"
)

// writePage replaces the figures in the page with those of this run.
func writePage(tb testing.TB, outcomes []*outcome, seed uint64, began time.Time) {
	tb.Helper()
	old, err := os.ReadFile(*page)
	labtest.Must(tb, err)
	before, rest, found := strings.Cut(string(old), pageBegin)
	_, after, ended := strings.Cut(rest, pageEnd)
	if !found || !ended {
		tb.Fatalf("%s has no place for the figures", *page)
	}
	text := before + pageBegin + "\n" + figures(outcomes, seed, began, labtest.Soak(tb)) + "\n" + pageEnd + after
	labtest.Must(tb, os.WriteFile(*page, []byte(text), 0o600))
}

// figures are the tables of the page.
func figures(outcomes []*outcome, seed uint64, began time.Time, soak time.Duration) string {
	slices.SortFunc(outcomes, func(a, b *outcome) int { return cmp.Compare(a.name, b.name) })
	var b strings.Builder
	all := outcome{name: "all", faults: make(map[string]int)}
	faults := func(o *outcome) (n int) {
		for _, times := range o.faults {
			n += times
		}
		return n
	}
	for _, o := range outcomes {
		for kind, n := range o.faults {
			all.faults[kind] += n
		}
		all.operations += o.operations
		all.requests += o.requests
		all.attempts += o.attempts
		all.executions += o.executions
		all.takeovers += o.takeovers
		all.replays += o.replays
		all.processes += o.processes
		all.violations = append(all.violations, o.violations...)
	}
	race := "without the race detector"
	if labtest.RaceEnabled {
		race = "with the race detector"
	}
	fmt.Fprintf(&b, "`make soak DURATION=%v SEED=%d` on %s: %s/%s, %d cores, %s, %s.\n\n",
		soak, seed, began.UTC().Format("2006-01-02"), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), race)
	b.WriteString("| deployment | faults | operations | calls | attempts | effects | takeovers | replays | processes started | violations |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, o := range append(slices.Clone(outcomes), &all) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n",
			o.name, faults(o), o.operations, o.requests, o.attempts, o.executions, o.takeovers, o.replays, o.processes, len(o.violations))
	}
	b.WriteString("\n| failovers of | failovers | operations lost | replayed before they were confirmed, and lost |\n|---|--:|--:|--:|\n")
	for _, o := range outcomes {
		if o.promoted > 0 {
			fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", o.name, o.promoted, o.lost, o.unconfirmed)
		}
	}
	b.WriteString("\n| where | faults, and how often |\n|---|---|\n")
	kinds := map[string][]string{}
	for _, kind := range slices.Sorted(maps.Keys(all.faults)) {
		where, fault, found := strings.Cut(kind, ": ")
		if !found {
			where, fault, _ = strings.Cut(kind, " ")
		}
		kinds[where] = append(kinds[where], fmt.Sprintf("%s %d", fault, all.faults[kind]))
	}
	for _, where := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&b, "| %s | %s |\n", where, strings.Join(kinds[where], "; "))
	}
	if len(all.violations) > 0 {
		b.WriteString("\nViolations:\n\n")
		for _, v := range all.violations {
			fmt.Fprintf(&b, "* %s\n", v)
		}
	}
	return b.String()
}
