// Command available finds out what the module proxy serves, before anything is built. It
// prints the environment in which the rest can be built and tested, as lines of shell,
// and what is left out on standard error. The file settings.mk in the folder out tells
// the Makefile which packages are left, and the file left-out has the line that closes a
// run.
//
// It exits with 1 if a framework is left out that REPRISE_TEST_REQUIRE names.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/reprise-go/reprise/tools/internal/available"
)

func main() {
	dir := flag.String("root", ".", "the folder of go.work")
	work := flag.String("work", "go.work", "the workspace, below root")
	out := flag.String("out", ".cache/available", "the folder for what is found")
	outside := flag.String("outside", "", "more folders of modules, which are not in go.work, separated by spaces")
	flag.Parse()
	env, err := look(context.Background(), *dir, *work, *out, strings.Fields(*outside))
	if err != nil {
		fmt.Fprintln(os.Stderr, "available:", err)
		os.Exit(1)
	}
	fmt.Print(env)
}

// look returns the environment for what is served, as lines of shell.
func look(ctx context.Context, dir, work, out string, outside []string) (string, error) {
	out, err := filepath.Abs(out)
	if err != nil {
		return "", err
	}
	r, err := available.Look(ctx, dir, work, out, outside...)
	if err != nil {
		return "", err
	}
	if r.Served() {
		return fmt.Sprintf("export REPRISE_AVAILABLE=all GOWORK=%s\n", quote(r.Workspace)), nil
	}
	if err := r.Require(os.Getenv("REPRISE_TEST_REQUIRE")); err != nil {
		return "", err
	}
	flags := goFlags(os.Getenv("GOFLAGS"), r.Tags())
	report(r, flags)
	for name, text := range map[string]string{"settings.mk": settings(r), "left-out": r.Summary() + "\n"} {
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("export REPRISE_AVAILABLE=%s GOWORK=%s GOFLAGS=%s\n", quote(out), quote(r.Workspace), quote(flags)), nil
}

// report says on standard error what is left out.
func report(r *available.Result, flags string) {
	line := strings.Repeat("=", 78)
	fmt.Fprintln(os.Stderr, line)
	fmt.Fprintln(os.Stderr, "The module proxy does not serve everything. What needs these modules is left out:")
	for _, f := range r.Refused {
		fmt.Fprintf(os.Stderr, "  %s %s\n    answer: %s\n", f.Module, f.Version, f.Answer)
	}
	for heading, what := range r.Parts {
		fmt.Fprintf(os.Stderr, "%s:\n  %s\n", heading, strings.Join(what, " "))
	}
	fmt.Fprintf(os.Stderr, "To run the go command by hand:\n  export GOWORK=%s GOFLAGS=%s\n", quote(r.Workspace), quote(flags))
	fmt.Fprintln(os.Stderr, line)
}

// settings returns what the Makefile includes.
func settings(r *available.Result) string {
	var b strings.Builder
	for _, v := range []struct {
		name string
		list []string
	}{{"AVAILABLE_PACKAGES", r.Packages}, {"TESTS_ONLY", r.TestsOnly}, {"NOT_ALONE", r.NotAlone}} {
		fmt.Fprintf(&b, "%s := %s\n", v.name, strings.Join(v.list, " "))
	}
	return b.String()
}

// goFlags adds build tags to the flags of the go command.
func goFlags(flags string, tags []string) string {
	var rest []string
	for f := range strings.FieldsSeq(flags) {
		if list, found := strings.CutPrefix(strings.TrimLeft(f, "-"), "tags="); found {
			tags = append(strings.Split(list, ","), tags...)
		} else {
			rest = append(rest, f)
		}
	}
	if len(tags) > 0 {
		rest = append(rest, "-tags="+strings.Join(tags, ","))
	}
	return strings.Join(rest, " ")
}

// quote writes a word for the shell.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
