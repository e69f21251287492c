// Command prose checks how comments and documents are wrapped: a comment that has a line
// to itself ends at column 90, and a line of Markdown is one sentence, or one clause of a
// long one. Code, tables and headings are left alone.
//
// It prints one line for each place and exits with 1 if there is one. Files in
// unfinished.txt are not reported; prose -list writes that list anew, without the files
// that are clean by now.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// unfinished is the list of files that are not wrapped yet, below the root.
const unfinished = "tools/prose/unfinished.txt"

func main() {
	dir := flag.String("root", ".", "the folder of go.work")
	list := flag.Bool("list", false, "drop the files from "+unfinished+" that are clean")
	flag.Parse()
	os.Exit(run(*dir, *list))
}

func run(dir string, list bool) int {
	found, err := check(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		return 2
	}
	known, err := readList(filepath.Join(dir, unfinished))
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		return 2
	}
	var rest []string
	bad := 0
	for _, file := range files(found) {
		if slices.Contains(known, file) {
			rest = append(rest, file)
			continue
		}
		for _, place := range found[file] {
			fmt.Fprintln(os.Stderr, place)
			bad++
		}
	}
	if list {
		if err := os.WriteFile(filepath.Join(dir, unfinished), []byte(strings.Join(append(rest, ""), "\n")), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "prose:", err)
			return 2
		}
	}
	fmt.Fprintf(os.Stderr, "prose: %d places, %d unfinished files\n", bad, len(rest))
	if bad > 0 {
		return 1
	}
	return 0
}

// check returns the places that break a rule, by file.
func check(dir string) (map[string][]string, error) {
	found := make(map[string][]string)
	err := fs.WalkDir(os.DirFS(dir), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		rules := map[string]func(string) []problem{".go": comments, ".md": sentences}[path.Ext(file)]
		if rules == nil {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		if generated.Match(text) {
			return nil // nobody wrote its comments
		}
		for _, p := range rules(string(text)) {
			found[file] = append(found[file], fmt.Sprintf("%s:%d: %s", file, p.line, p.text))
		}
		return nil
	})
	return found, err
}

// generated marks the files that a program wrote.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// problem is a place that breaks a rule.
type problem struct {
	line int
	text string
}

func files(found map[string][]string) []string {
	var names []string
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// readList reads the list of unfinished files; without the file there are none.
func readList(name string) ([]string, error) {
	file, err := os.Open(name)
	if os.IsNotExist(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	var list []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		list = append(list, lines.Text())
	}
	return list, lines.Err()
}
