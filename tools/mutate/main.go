// Command mutate breaks a package in one place at a time, hundreds of times, and runs the
// tests that come by there. A break that no test notices is a survivor: a rule that
// nobody tests, or code that makes no difference.
//
//	mutate [-root folder] [-files regexp] [-lines regexp] [-run regexp] [-skip regexp]
//		[-longest time] [-with packages] [-workers n] [-out file] package
//
// All breaks are compiled into one test program, each behind a switch, so that one costs
// the time of its tests and nothing else. docs/mutants.md has the results.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

func main() {
	root := flag.String("root", ".", "the folder that the package is in, or above it")
	files := flag.String("files", ".", "break only files whose names match")
	only := flag.String("run", ".", "run only the tests whose names match")
	skip := flag.String("skip", "^$", "leave out the tests whose names match")
	longest := flag.Duration("longest", 2*time.Minute, "leave out the tests that take longer")
	lines := flag.String("lines", "", "break only these: file.go:line, regexp")
	workers := flag.Int("workers", max(1, runtime.NumCPU()/2), "how many breaks are tested at once")
	with := flag.String("with", "", "run the tests of these packages, too: list")
	out := flag.String("out", "", "write the results to this file, as JSON")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err == nil {
		defer os.RemoveAll(dir)
		r := &run{
			root: *root, pkg: flag.Arg(0), dir: dir, workers: *workers, longest: *longest,
			files: regexp.MustCompile(*files), only: regexp.MustCompile(*only), skip: regexp.MustCompile(*skip), lines: regexp.MustCompile(*lines),
		}
		if *with != "" {
			r.with = strings.Split(*with, ",")
		}
		if err = r.do(); err == nil {
			r.print(os.Stdout)
			err = r.write(*out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1) //nolint:gocritic // the folder is temporary anyway
	}
}

// A site is a place that can be broken.
type site struct {
	ID     int    `json:"-"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	What   string `json:"what"`   // how it is broken: "< becomes <="
	Code   string `json:"code"`   // the line
	Status status `json:"status"` // of the break
	Test   string `json:"test,omitempty"`
}

func (s *site) String() string {
	return fmt.Sprintf("%s:%d:%d\t%s\t%s\t%s", s.File, s.Line, s.Column, s.Status, s.What, s.Code)
}

type status string

const (
	killed    status = "killed"
	timedOut  status = "timed out" // so that a test noticed
	lived     status = "lived"
	uncovered status = "not covered" // no test comes by
)

func (r *run) write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r.sites, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Clean(path), text, 0o600)
}
