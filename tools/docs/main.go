// Command docs checks that the Go names, flags, variables, make targets and paths in code
// spans of the Markdown files exist, and those in doc links of Go comments; that an index
// in docs links every page of its folder; and that generated tables are up to date. With
// -write it makes these tables. Links are checked by .ci/site links.
//
// It needs no build. It prints a line for each name that it cannot resolve, and exits
// with 1 if there is one, with 2 if it could not look.
package main

//go:generate go run . -root ../.. -write

import (
	"flag"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

func main() {
	dir := flag.String("root", ".", "the folder of go.work")
	write := flag.Bool("write", false, "make the generated parts of pages anew, instead of checking the pages")
	flag.Parse()
	var bad []string
	_, err := pages(*dir, *write)
	if !*write && err == nil {
		bad, err = check(*dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(2)
	}
	for _, line := range bad {
		fmt.Fprintln(os.Stderr, line)
	}
	if len(bad) > 0 {
		os.Exit(1)
	}
}

// check returns a line for each name that cannot be resolved.
func check(dir string) ([]string, error) {
	p, err := load(dir)
	if err != nil {
		return nil, err
	}
	for _, page := range p.pages {
		for _, span := range page.Code {
			p.at = fmt.Sprintf("%s:%d", page.File, span.Line)
			p.span(page.File, span.Text)
		}
		if strings.HasPrefix(page.File, "docs/") && path.Base(page.File) == "README.md" {
			p.index(page.File, page.Text)
		}
	}
	for _, c := range p.comments {
		for i, line := range strings.Split(c.text, "\n") {
			p.at = fmt.Sprintf("%s:%d", c.file, c.line+i)
			p.comment(line)
		}
	}
	stale, err := pages(dir, false)
	for _, page := range stale {
		p.bad = append(p.bad, page+": its generated part is old: run go generate ./docs in tools")
	}
	slices.Sort(p.bad)
	return slices.Compact(p.bad), err
}

// index wants a link to each page in the folder of a README.
func (p *project) index(file, text string) {
	p.at = file
	for _, other := range p.pages {
		if path.Dir(other.File) == path.Dir(file) && other.File != file {
			p.want(strings.Contains(text, "]("+path.Base(other.File)+")"), "the index lacks %s", path.Base(other.File))
		}
	}
}
