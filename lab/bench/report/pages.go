package report

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/reprise-go/reprise/core/protocol"
)

// The files of a folder of documentation that are made from results, and the results.
const (
	resultsFile = "benchmarks.json"
	pictures    = "benchmarks" // folder
)

// madePages are the pages with parts that are made.
var madePages = []string{"benchmarks.md", "benchmark-tables.md", "cost.md", "growth.md"}

// made is a part of a page that [Pages] writes: from a comment that names it to the next
// that ends it.
var made = regexp.MustCompile(`(?s)<!-- made: ([a-z0-9]+) -->\n.*?<!-- end -->\n`)

// ofAll has the function that makes each part that is not about one suite.
var ofAll = map[string]func(Results) string{
	"targets": reached, "added": added, "share": share, "adds": adds, "peers": besidePeers, "floors": besideFloors,
	"day": day, "billion": billion,
}

// Pages returns the files that follow from the results in a folder of documentation, by
// their paths: the pages, whose prose stays as it is, and their pictures.
func Pages(docs string) (map[string]string, error) {
	results, err := Read(filepath.Join(docs, resultsFile))
	if err != nil {
		return nil, err
	}
	if err := results.promised(); err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, page := range madePages {
		file := filepath.Join(docs, page)
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if files[file], err = results.fill(page, string(text)); err != nil {
			return nil, err
		}
	}
	for _, other := range cellPages {
		file := filepath.Join(docs, other)
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		files[file] = results.fillCells(string(text))
	}
	for _, t := range themes {
		draw := func(name, svg string) { files[filepath.Join(docs, pictures, name+"-"+t.name+".svg")] = svg }
		draw("adds", bars(results, t))
		for name, c := range charts {
			if suite, ok := results[name]; ok {
				draw(name, c.svg(suite, t))
			}
		}
	}
	return files, nil
}

// fill makes the parts of a page.
func (r Results) fill(page, text string) (string, error) {
	var bad error
	text = made.ReplaceAllStringFunc(text, func(part string) string {
		name := made.FindStringSubmatch(part)[1]
		if of := ofAll[name]; of != nil {
			return fmt.Sprintf("<!-- made: %s -->\n%s<!-- end -->\n", name, of(r))
		}
		suite, ok := r[name]
		render := tables[name]
		if !ok || render == nil {
			bad = fmt.Errorf("%s has a part %q, which is not in %s or has no table", page, name, resultsFile)
			return part
		}
		var b strings.Builder
		fmt.Fprintf(&b, "<!-- made: %s -->\n", name)
		if c, ok := charts[name]; ok {
			b.WriteString(pictureOf(name, c.title+"; the tables below have the numbers"))
		}
		b.WriteString(render(suite))
		b.WriteString(provenance(suite))
		b.WriteString("<!-- end -->\n")
		return b.String()
	})
	return text, bad
}

// promised refuses figures of a server that broke its policy. Responses other than the
// handler's may only be those of claims that got no answer in their time, as one that
// queues for a pool may: any other says that a lease was lost.
func (r Results) promised() error {
	p := protocol.CodeStoreUnavailable.Problem()
	for name, suite := range r {
		for _, row := range suite.Rows {
			for answer, n := range row.Others {
				if answer != fmt.Sprintf("%d %s", p.Status, p.Code) {
					return fmt.Errorf("suite %s: %s: %d requests got the answer %s: do not publish it, find out why", name, row.Variant, n, answer)
				}
			}
		}
	}
	return nil
}

// pictureOf is a picture in Markdown, for readers of both themes, with its text for those
// who do not see it.
func pictureOf(name, alt string) string {
	return fmt.Sprintf(`<picture>
<source media="(prefers-color-scheme: dark)" srcset="%[1]s/%[2]s-dark.svg">
<img alt="%[3]s" src="%[1]s/%[2]s-light.svg">
</picture>
`, pictures, name, alt)
}

// provenance says where the numbers come from.
func provenance(s Suite) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMade by `%s` on %s at %s, on %d cores (%s) with %s", s.Command, s.Date, s.Commit, s.Machine.Cores, s.Machine.CPU, s.Machine.Go)
	for _, v := range s.Machine.versions() {
		b.WriteString(", " + v)
	}
	fmt.Fprintf(&b, "; load average before it %.1f", s.Machine.Load)
	if s.Machine.After > 0 {
		fmt.Fprintf(&b, ", after it %.1f", s.Machine.After)
	}
	if s.Rounds > 0 && s.Seconds > 0 {
		fmt.Fprintf(&b, "; %d shuffled rounds of %g s", s.Rounds, s.Seconds)
	}
	b.WriteString(".\n")
	for _, what := range s.LeftOut {
		fmt.Fprintf(&b, "\nLeft out: %s.\n", strings.TrimSuffix(what, "."))
	}
	return b.String()
}
