package commands_test

import (
	"errors"
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

	"github.com/reprise-go/reprise/tools/internal/markdown"
)

// block is a shell block, as a reader copies it.
type block struct {
	at       string // file:line
	language string
	text     string
	how
}

// how is the parsed directive of a block.
type how struct {
	until   []string // the output of the first commands, which serve, to wait for
	needs   []string // servers
	prints  []string
	long    bool   // not under -short
	because string // not run

	continues bool // whether the block continues the processes of the one above
}

// Languages of blocks: run, compiled, and not meant for a machine. Any other needs a
// reason not to be run.
var (
	shells = []string{"sh"}
	data   = []string{"text", "json", "yaml", "toml", "mermaid"}
)

// program matches the first word of a command in a package comment.
var program = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*(go|make|curl|reprise|psql|redis-cli|nats|nats-server|docker|git|npm) `)

// read returns the blocks of the files, whose names are relative to root, and the
// mistakes in their directives.
func read(root string, files []string) (found []block, wrong []string) {
	for _, file := range files {
		if strings.Contains(file, "testdata/") {
			continue
		}
		var inFile []block
		var err error
		switch path.Ext(file) {
		case ".md":
			inFile, err = inPage(root, file)
		case ".go":
			inFile, err = inComment(root, file)
		}
		if err != nil {
			wrong = append(wrong, err.Error())
		}
		for _, b := range inFile {
			if b.because == "" && !slices.Contains(slices.Concat(shells, data, []string{"go"}), b.language) {
				wrong = append(wrong, fmt.Sprintf("%s: a block of the language %q is not run: make it one of %q, or say why", b.at, b.language, slices.Concat(shells, data, []string{"go"})))
				continue
			}
			found = append(found, b)
		}
	}
	return found, wrong
}

func inPage(root, file string) ([]block, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	var found []block
	for _, b := range markdown.Read(file, string(text)).Blocks {
		at := fmt.Sprintf("%s:%d", file, b.Line)
		how, err := parse(b.Comment)
		if err != nil {
			return found, fmt.Errorf("%s: %w", at, err)
		}
		text := b.Text
		if how.continues && len(found) > 0 {
			above := found[len(found)-1]
			found, text = found[:len(found)-1], above.text+text
		}
		found = append(found, block{at, b.Language, text, how})
	}
	return found, nil
}

// inComment returns the shell blocks of a package comment.
func inComment(root, file string) ([]block, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, filepath.Join(root, filepath.FromSlash(file)), nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil || parsed.Doc == nil {
		return nil, err
	}
	at := fmt.Sprintf("%s:%d", file, set.Position(parsed.Doc.Pos()).Line)
	var directive string
	for _, line := range parsed.Doc.List {
		if text, ok := strings.CutPrefix(line.Text, "//run:"); ok {
			directive = text
		}
	}
	how, err := parse(directive)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	var found []block
	for _, b := range new(comment.Parser).Parse(parsed.Doc.Text()).Content {
		if code, ok := b.(*comment.Code); ok && program.MatchString(code.Text) {
			found = append(found, block{at, "sh", code.Text, how})
		}
	}
	return found, nil
}

// parse reads a directive. Another comment than a directive is an error, so that a
// misspelled one is not taken for none.
func parse(directive string) (how, error) {
	var h how
	if reason, ok := strings.CutPrefix(directive, "not run: "); ok {
		h.because = reason
		return h, nil
	}
	for clause := range strings.SplitSeq(directive, "; ") {
		var err error
		switch verb, rest, _ := strings.Cut(clause, " "); {
		case clause == "":
		case strings.HasPrefix(clause, "background until "):
			h.until = append(h.until, strings.TrimPrefix(clause, "background until "))
		case clause == "needs redis", clause == "needs postgres", clause == "needs mariadb":
			h.needs = append(h.needs, rest)
		case verb == "prints":
			var text string
			text, err = strconv.Unquote(rest)
			h.prints = append(h.prints, text)
		case clause == "continues":
			h.continues = true
		case clause == "long":
			h.long = true
		default:
			err = errors.New("no such clause")
		}
		if err != nil {
			return h, fmt.Errorf("the directive %q: %w", clause, err)
		}
	}
	return h, nil
}

// commands returns the lines of a block without comments and empty lines, and the calls
// of make separately.
func (b block) commands() (run, makes []string) {
	for line := range strings.Lines(b.text) {
		line = strings.TrimRight(line, "\n")
		command := strings.TrimSpace(line)
		switch {
		case command == "" || strings.HasPrefix(command, "#"):
		case command == "make" || strings.HasPrefix(command, "make "):
			command, _, _ = strings.Cut(command, "#")
			makes = append(makes, strings.TrimSpace(command))
		default:
			run = append(run, line)
		}
	}
	return run, makes
}
