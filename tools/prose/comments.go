package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// widest is the last column of a comment. A tab is one column.
const widest = 90

// groups are the counted words, each with the most that 10,000 words of comments may
// have. Well-kept Go projects stay below half of these limits.
var groups = [...]struct {
	name  string
	words *regexp.Regexp
	limit int
}{
	{"what", regexp.MustCompile(`(?i)\bwhat(ever)?\b`), 8},
	{"nobody", regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever)\b`), 1},
	{"nothing", regexp.MustCompile(`(?i)\bnothing\b`), 5},
	{"of its own", regexp.MustCompile(`(?i)\b(of\s+(its|their|his|our|your|one's)\s+own|by\s+(itself|themselves))\b`), 1},
}

// count has the number of words in the comments of an area, and of those in each group.
type count struct {
	words int
	found [len(groups)]int
}

// rate returns how often group i occurs in 10,000 words.
func (c count) rate(i int) float64 {
	return float64(c.found[i]) * 10_000 / float64(max(c.words, 1))
}

// above reports whether group i occurs too often. Its first occurrence never does, so
// that a small area can pass.
func (c count) above(i int) bool { return c.found[i] > max(1, groups[i].limit*c.words/10_000) }

// measured are the comments of a tree.
type measured struct {
	counts [len(areas)]count
	places []string // of the counted words
	wide   []string // comments that end behind the last column
}

// measure reads the Go files below root, except testdata and generated files.
func measure(root string) (measured, error) {
	var m measured
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		source, err := os.ReadFile(name) //nolint:gosec // a checkout, which has no hostile links
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		return m.add(filepath.ToSlash(below), string(source))
	})
	return m, err
}

// add measures one file.
func (m *measured) add(name, source string) error {
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	lines := strings.Split(source, "\n")
	for _, group := range file.Comments {
		if exampleOutput.MatchString(group.List[0].Text) {
			continue
		}
		text := commentText(group)
		first := positions.Position(group.Pos()).Line
		m.count(name, first, text)
		for i, words := range strings.Split(text, "\n") {
			line := lines[first+i-1]
			columns := utf8.RuneCountInString(line)
			if columns > widest && ownLine.MatchString(line) && strings.Contains(strings.TrimSpace(words), " ") {
				m.wide = append(m.wide, fmt.Sprintf("%s:%d: the comment ends at column %d, want %d at most", name, first+i, columns, widest))
			}
		}
	}
	return nil
}

// count adds the words of a comment that begins at line first of a file.
func (m *measured) count(name string, first int, text string) {
	words := len(word.FindAllString(text, -1))
	var found [len(groups)]int
	for i, g := range groups {
		for _, at := range g.words.FindAllStringIndex(text, -1) {
			found[i]++
			line := first + strings.Count(text[:at[0]], "\n")
			m.places = append(m.places, fmt.Sprintf("%s:%d: %s", name, line, strings.Join(strings.Fields(text[at[0]:at[1]]), " ")))
		}
	}
	for i, a := range areas {
		if !a.folders.MatchString(name) {
			continue
		}
		m.counts[i].words += words
		for g, n := range found {
			m.counts[i].found[g] += n
		}
	}
}

// commentText returns a comment without its slashes, line by line; directives become
// empty lines.
func commentText(group *ast.CommentGroup) string {
	var lines []string
	for _, c := range group.List {
		switch {
		case directive.MatchString(c.Text):
			lines = append(lines, "")
		case strings.HasPrefix(c.Text, "//"):
			lines = append(lines, c.Text[2:])
		default:
			lines = append(lines, strings.TrimSuffix(c.Text[2:], "*/"))
		}
	}
	return strings.Join(lines, "\n")
}

var (
	word          = regexp.MustCompile(`\pL[\pL\pN_'.-]*`)
	directive     = regexp.MustCompile(`^//([a-z0-9]+:[a-z0-9]|line |\s*\+build )`)
	exampleOutput = regexp.MustCompile(`^// (Output|Unordered output):`)

	// ownLine is a line of prose. A comment behind code belongs to its line, and the text
	// behind a tab is code.
	ownLine = regexp.MustCompile(`^\s*// `)
)
