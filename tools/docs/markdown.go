package main

import (
	"regexp"
	"strings"
)

// page is what a Markdown file names.
type page struct {
	file    string
	links   []span // the targets of links
	code    []span // code spans
	blocks  []block
	anchors map[string]bool
}

// span is a text on a line.
type span struct {
	text string
	line int
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
	slugDrop = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// readPage reads a Markdown file.
func readPage(file, text string) *page {
	p := &page{file: file, anchors: map[string]bool{}}
	var open *block
	for i, line := range strings.Split(text, "\n") {
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

// slug returns the anchor that GitHub gives a heading.
func slug(title string) string {
	title = slugDrop.ReplaceAllString(strings.ToLower(title), "")
	return strings.ReplaceAll(title, " ", "-")
}
