// Package markdown reads the parts of a Markdown file that the checks of documentation
// need.
package markdown

import (
	"regexp"
	"strings"
)

// Page is the names in a Markdown file.
type Page struct {
	File    string
	Links   []Span // the targets of links
	Code    []Span // code spans
	Blocks  []Block
	Tables  []Table
	Anchors map[string]bool
	Words   int // to read: outside of blocks, of comments and of what is made of the code
}

// Span is a text on a line.
type Span struct {
	Text string
	Line int
}

// Table is a table of a struct's fields: its first header cell is the name of the type
// alone.
type Table struct {
	Type   Span
	Fields []Span
}

// Block is a fenced code block.
type Block struct {
	Language string
	Text     string
	Line     int    // the first of the text
	Comment  string // of HTML, on the line above the fence
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeSpan = regexp.MustCompile("``(.+?)``|`([^`]+)`")
	heading  = regexp.MustCompile(`^#{1,6} +(.*)$`)
	hidden   = regexp.MustCompile(`^\s*<!--\s*(.*?)\s*-->\s*$`)
	fence    = regexp.MustCompile("^\\s*```(.*)$")
	cellName = regexp.MustCompile("^\\| `([a-z]\\w+\\.[A-Z]\\w+)` \\|")
	made     = regexp.MustCompile(`^<!-- (options|metrics): `)
	word     = regexp.MustCompile(`\S*[\p{L}\p{N}]\S*`)
	slugDrop = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Read reads a Markdown file.
func Read(file, text string) *Page {
	p := &Page{File: file, Anchors: map[string]bool{}}
	var open *Block
	inTable, inMade := false, false
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "|") {
			inTable = false
		}
		if m := fence.FindStringSubmatch(line); m != nil {
			if open == nil {
				open = &Block{Language: strings.TrimSpace(m[1]), Line: i + 2}
				if i > 0 {
					if c := hidden.FindStringSubmatch(lines[i-1]); c != nil {
						open.Comment = c[1]
					}
				}
			} else {
				p.Blocks, open = append(p.Blocks, *open), nil
			}
			continue
		}
		if open != nil {
			open.Text += line + "\n"
			continue
		}
		switch {
		case made.MatchString(line):
			inMade = true
		case hidden.MatchString(line):
			inMade = false
		case !inMade:
			p.Words += len(word.FindAllString(link.ReplaceAllString(line, "]"), -1))
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			p.Anchors[slug(m[1])] = true
		}
		switch m := cellName.FindStringSubmatch(line); {
		case m != nil && !inTable:
			inTable = true
			p.Tables = append(p.Tables, Table{Type: Span{m[1], i + 1}})
		case inTable:
			p.Tables[len(p.Tables)-1].addRow(line, i+1)
		}
		plain := codeSpan.ReplaceAllStringFunc(line, func(s string) string {
			p.Code = append(p.Code, Span{strings.TrimSpace(strings.Trim(s, "`")), i + 1})
			return ""
		})
		for _, m := range link.FindAllStringSubmatch(plain, -1) {
			p.Links = append(p.Links, Span{m[1], i + 1})
		}
	}
	return p
}

// addRow takes the names in the first cell of a row.
func (t *Table) addRow(row string, line int) {
	first, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
	for _, m := range codeSpan.FindAllString(first, -1) {
		t.Fields = append(t.Fields, Span{strings.Trim(m, "`"), line})
	}
}

// slug returns the anchor that GitHub gives a heading.
func slug(title string) string {
	title = slugDrop.ReplaceAllString(strings.ToLower(title), "")
	return strings.ReplaceAll(title, " ", "-")
}
