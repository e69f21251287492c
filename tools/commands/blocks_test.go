package commands_test

import (
	"fmt"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/markdown"
	"github.com/reprise-go/reprise/tools/internal/tree"
)

// block is a code block of a page, with its parsed directive.
type block struct {
	at       string // file:line
	language string
	text     string

	until  []string // the output of the first commands, which serve, to wait for
	needs  string   // a server
	prints []string
	notRun string // the reason

	continues bool
}

// languages of blocks; any other needs a reason not to be run.
var languages = []string{"sh", "go", "text", "json", "yaml", "toml", "mermaid"}

// program matches the first word of a command in a package comment.
var program = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*(go|make|curl|reprise|psql|redis-cli|nats|nats-server|docker|git|npm) `)

// find returns the blocks of a work tree, and reports those that it does not understand.
func find(t *testing.T, root string) (found []block) {
	t.Helper()
	files, ok := tree.Run(t, root, nil, "git", "ls-files", "*.md", "*.go")
	if !ok {
		t.Fatal(files)
	}
	for file := range strings.FieldsSeq(files) {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		switch {
		case err != nil:
			t.Fatal(err)
		case strings.Contains(file, "testdata/"):
		case path.Ext(file) == ".go":
			found = append(found, inComment(t, file, text)...)
		default:
			for _, b := range markdown.Read(file, string(text)).Blocks {
				next := parse(t, block{at: fmt.Sprintf("%s:%d", file, b.Line), language: b.Language, text: b.Text}, b.Comment)
				if next.continues {
					last := len(found) - 1
					next.text, found = found[last].text+next.text, found[:last]
				}
				found = append(found, next)
			}
		}
	}
	return found
}

// inComment returns the shell blocks of a package comment.
func inComment(t *testing.T, file string, text []byte) (found []block) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil || parsed.Doc == nil {
		return nil
	}
	directive := ""
	for _, line := range parsed.Doc.List {
		if text, ok := strings.CutPrefix(line.Text, "//run:"); ok {
			directive = text
		}
	}
	at := fmt.Sprintf("%s:%d", file, set.Position(parsed.Doc.Pos()).Line)
	for _, b := range new(comment.Parser).Parse(parsed.Doc.Text()).Content {
		if code, ok := b.(*comment.Code); ok && program.MatchString(code.Text) {
			found = append(found, parse(t, block{at: at, language: "sh", text: code.Text}, directive))
		}
	}
	return found
}

// parse reads the directive of a block. Any other comment is a mistake, so that a
// misspelled directive is not taken for none.
func parse(t *testing.T, b block, directive string) block {
	t.Helper()
	if reason, ok := strings.CutPrefix(directive, "not run: "); ok {
		b.notRun = reason
		return b
	}
	if !slices.Contains(languages, b.language) {
		t.Errorf("%s: a block of the language %q: make it one of %q, or say why it is not run", b.at, b.language, languages)
	}
	for clause := range strings.SplitSeq(directive, "; ") {
		verb, rest, _ := strings.Cut(clause, " ")
		text, err := strconv.Unquote(rest)
		switch {
		case clause == "":
		case strings.HasPrefix(clause, "background until "):
			b.until = append(b.until, strings.TrimPrefix(clause, "background until "))
		case verb == "needs" && needs[rest] != nil:
			b.needs = rest
		case verb == "prints" && err == nil:
			b.prints = append(b.prints, text)
		case clause == "continues":
			b.continues = true
		default:
			t.Errorf("%s: there is no directive %q", b.at, clause)
		}
	}
	return b
}

// commands returns the lines of a block without comments, empty lines and calls of make,
// whose targets have to exist.
func (b block) commands(t *testing.T, makefile string) (lines []string) {
	t.Helper()
	for line := range strings.SplitSeq(b.text, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case words[0] != "make":
			lines = append(lines, line)
		case len(words) > 1 && !strings.HasPrefix(words[1], "#") && !strings.Contains(makefile, "\n"+words[1]+":"):
			t.Errorf("%s: make has no target %s", b.at, words[1])
		}
	}
	return lines
}
