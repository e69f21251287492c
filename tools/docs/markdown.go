package main

import (
	"regexp"
	"strings"
)

// page is the names in a Markdown file.
type page struct {
	file    string
	links   []span // the targets of links
	code    []span // code spans
	blocks  []block
	tables  []table
	anchors map[string]bool
}

// span is a text on a line.
type span struct {
	text string
	line int
}

// table is a table of a struct's fields: its first header cell is the name of the type
// alone.
type table struct {
	typ    span
	fields []span
}

// block is a fenced code block.
type block struct {
	language string
	text     string
	line     int // the first of the text
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeSpan = regexp.MustCompile("``(.+?)``|`([^`]+)`")
	heading  = regexp.MustCompile(`^#{1,6} +(.*)$`)
	fence    = regexp.MustCompile("^\\s*```(.*)$")
	cellName = regexp.MustCompile("^\\| `([a-z]\\w+\\.[A-Z]\\w+)` \\|")
	slugDrop = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// readPage reads a Markdown file.
func readPage(file, text string) *page {
	p := &page{file: file, anchors: map[string]bool{}}
	var open *block
	inTable := false
	for i, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			inTable = false
		}
		if m := fence.FindStringSubmatch(line); m != nil {
			if open == nil {
				open = &block{language: strings.TrimSpace(m[1]), line: i + 2}
			} else {
				p.blocks, open = append(p.blocks, *open), nil
			}
			continue
		}
		if open != nil {
			open.text += line + "\n"
			continue
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			p.anchors[slug(m[1])] = true
		}
		switch m := cellName.FindStringSubmatch(line); {
		case m != nil && !inTable:
			inTable = true
			p.tables = append(p.tables, table{typ: span{m[1], i + 1}})
		case inTable:
			p.tables[len(p.tables)-1].addRow(line, i+1)
		}
		plain := codeSpan.ReplaceAllStringFunc(line, func(s string) string {
			p.code = append(p.code, span{strings.TrimSpace(strings.Trim(s, "`")), i + 1})
			return ""
		})
		for _, m := range link.FindAllStringSubmatch(plain, -1) {
			p.links = append(p.links, span{m[1], i + 1})
		}
	}
	return p
}

// addRow takes the names in the first cell of a row.
func (t *table) addRow(row string, line int) {
	first, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
	for _, m := range codeSpan.FindAllString(first, -1) {
		t.fields = append(t.fields, span{strings.Trim(m, "`"), line})
	}
}

// slug returns the anchor that GitHub gives a heading.
func slug(title string) string {
	title = slugDrop.ReplaceAllString(strings.ToLower(title), "")
	return strings.ReplaceAll(title, " ", "-")
}
