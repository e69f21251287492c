// Command docs checks that the names in the documentation exist. It resolves, in every
// Markdown file of the project: relative links and their anchors, file paths, modules,
// make targets, environment variables, tests, and the Go names in code spans and code
// blocks; and in Go comments: doc links, the Go names of code blocks, and names with
// their package.
//
// It needs the standard library only, and no build. It prints one line for each name that
// it cannot resolve and exits with 1 if there is one, with 2 if it could not look. Names
// of other projects are listed in foreign.go.
package main

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	dir := flag.String("root", ".", "the folder of go.work")
	write := flag.Bool("write", false, "make the generated parts of pages anew, instead of checking the pages")
	flag.Parse()
	if *write {
		if _, err := pages(*dir, true); err != nil {
			fmt.Fprintln(os.Stderr, "docs:", err)
			os.Exit(2)
		}
		return
	}
	os.Exit(run(*dir))
}

func run(dir string) int {
	bad, names, err := check(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		return 2
	}
	for _, line := range bad {
		fmt.Fprintln(os.Stderr, line)
	}
	fmt.Fprintf(os.Stderr, "docs: %d names, %d unresolved\n", names, len(bad))
	if len(bad) > 0 {
		return 1
	}
	return 0
}

// check returns a line for each name that cannot be resolved, and how many names it
// looked up.
func check(dir string) (unresolved []string, names int, err error) {
	p, err := load(dir)
	if err != nil {
		return nil, 0, err
	}
	r := &report{project: p}
	for _, page := range p.pages {
		r.page(page)
		if path.Base(page.File) == "README.md" && strings.HasPrefix(page.File, "docs/") {
			r.index(page)
		}
	}
	for _, pkg := range p.packages {
		for _, c := range pkg.docs {
			r.doc(pkg, c)
		}
	}
	for _, c := range p.comments {
		r.comment(c)
	}
	stale, err := pages(dir, false)
	if err != nil {
		return nil, 0, err
	}
	for _, page := range stale {
		r.lines = append(r.lines, page+": its generated part is old: run make docs/write")
	}
	if n := p.words(); n > mostWords {
		r.lines = append(r.lines, fmt.Sprintf("docs: the pages for users have %d words, %d at most: make one shorter", n, mostWords))
	}
	slices.Sort(r.lines)
	return slices.Compact(r.lines), r.names, nil
}

// report collects the names that cannot be resolved.
type report struct {
	*project

	lines []string
	names int
}

// want counts a name, and reports it at a place if it is not resolved.
func (r *report) want(resolved bool, file string, line int, format string, args ...any) {
	r.names++
	if !resolved {
		r.lines = append(r.lines, fmt.Sprintf("%s:%d: %s", filepath.ToSlash(file), line, fmt.Sprintf(format, args...)))
	}
}
