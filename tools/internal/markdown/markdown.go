// Package markdown reads the code in a Markdown file.
package markdown

import (
	"regexp"
	"strings"
)

// Page is the code in a Markdown file.
type Page struct {
	File, Text string
	Code       []Span // code spans
	Blocks     []Block
}

// Span is a text on a line.
type Span struct {
	Text string
	Line int
}

// Block is a fenced code block.
type Block struct {
	Language string
	Text     string
	Line     int    // the first of the text
	Comment  string // of HTML, on the line above the fence
}

var (
	codeSpan = regexp.MustCompile("``(.+?)``|`([^`]+)`")
	hidden   = regexp.MustCompile(`^\s*<!--\s*(.*?)\s*-->\s*$`)
	fence    = regexp.MustCompile("^\\s*```(.*)$")
)

// Read reads a Markdown file.
func Read(file, text string) *Page {
	p := &Page{File: file, Text: text}
	var open *Block
	above := ""
	for i, line := range strings.Split(text, "\n") {
		switch m := fence.FindStringSubmatch(line); {
		case m != nil && open == nil:
			open = &Block{Language: strings.TrimSpace(m[1]), Line: i + 2}
			if c := hidden.FindStringSubmatch(above); c != nil {
				open.Comment = c[1]
			}
		case m != nil:
			p.Blocks, open = append(p.Blocks, *open), nil
		case open != nil:
			open.Text += line + "\n"
		default:
			for _, s := range codeSpan.FindAllString(line, -1) {
				p.Code = append(p.Code, Span{strings.TrimSpace(strings.Trim(s, "`")), i + 1})
			}
		}
		above = line
	}
	return p
}
