package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// widest is the last column of a comment. A tab is one column.
const widest = 90

// comments finds the comments of a Go file that are too wide. A comment behind code
// belongs to its line, a directive or a single long word cannot be wrapped, and the
// output of an example is what it is.
func comments(source string) []problem {
	var found []problem
	raw := false // inside a raw string, where "//" starts no comment
	output := false
	number := 0
	for line := range strings.Lines(source) {
		number++
		line = strings.TrimRight(line, "\n")
		text, isComment := strings.CutPrefix(strings.TrimLeft(line, "\t "), "//")
		output = isComment && (output || outputOf.MatchString(text))
		switch {
		case output:
		case raw, !isComment:
			if strings.Count(line, "`")%2 == 1 {
				raw = !raw
			}
		case utf8.RuneCountInString(line) > widest && strings.HasPrefix(text, " ") && strings.Contains(strings.TrimSpace(text), " "):
			found = append(found, problem{number, fmt.Sprintf("the comment ends at column %d, want %d at most", utf8.RuneCountInString(line), widest)})
		}
	}
	return found
}

// outputOf begins the output of an example.
var outputOf = regexp.MustCompile(`^ (Output|Unordered output):`)

var (
	// sentenceEnd is an end of a sentence with the beginning of another behind it.
	sentenceEnd = regexp.MustCompile(`[a-z0-9)\x60"*][.?!] +[A-Z\x60*\[]`)

	// abbreviations end no sentence.
	abbreviations = regexp.MustCompile(`\b(e\.g|i\.e|etc|vs|cf|Sect|No)\. `)

	// inCode is a span of code.
	inCode = regexp.MustCompile("`[^`]*`")

	// notProse begins a line of something other than a paragraph.
	notProse = regexp.MustCompile(`^\s*(#|\||>|<|\[[^\]]+\]:|$)`)

	// item begins an item of a list.
	item = regexp.MustCompile(`^\s*([*+-]|\d+\.) `)

	// clauseEnd ends a line that a sentence goes on after.
	clauseEnd = regexp.MustCompile(`[.,;:?!)\]*_"\x60…–—-]$`)
)

// sentences finds the lines of a Markdown file that hold more than a sentence, and those
// that end within a clause.
func sentences(text string) []problem {
	var found []problem
	lines := strings.Split(text, "\n")
	fenced := false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if fenced || notProse.MatchString(line) || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t") {
			continue
		}
		prose := item.ReplaceAllString(line, "")
		prose = abbreviations.ReplaceAllString(inCode.ReplaceAllString(prose, "`x`"), "x ")
		if sentenceEnd.MatchString(prose) {
			found = append(found, problem{i + 1, "more than one sentence on a line"})
		}
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		goesOn := !notProse.MatchString(next) && !item.MatchString(next) && !strings.HasPrefix(strings.TrimSpace(next), "```")
		if goesOn && !clauseEnd.MatchString(strings.TrimRight(line, " ")) {
			found = append(found, problem{i + 1, "the line ends within a clause"})
		}
	}
	return found
}
