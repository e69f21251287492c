package main

import (
	"slices"
	"strings"
)

// mostWords is how long the pages for users may be together: a page that grows takes its
// words from another.
const mostWords = 30_000

// forUsers are the pages and folders that mostWords counts. Code blocks and tables that
// are made from the code are left out; other tables count.
var forUsers = []string{"README.md", "cmd/reprise/README.md", "docs/README.md", "docs/guides/", "docs/reference/", "docs/operate/"}

// words returns the number of words that users are asked to read.
func (p *project) words() int {
	words := 0
	for _, page := range p.pages {
		if slices.ContainsFunc(forUsers, func(place string) bool {
			return page.File == place || strings.HasSuffix(place, "/") && strings.HasPrefix(page.File, place)
		}) {
			words += page.Words
		}
	}
	return words
}
