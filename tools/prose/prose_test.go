package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommentsEndAtColumn90(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 18)
	for _, row := range []struct {
		name, source string
		want         int
	}{
		{"a short comment", "// word\n", 0},
		{"ninety columns", "// " + strings.Repeat("a ", 43) + "b\n", 0},
		{"ninety-one columns", "// " + strings.Repeat("a ", 43) + "bc\n", 1},
		{"a long comment", "\t// " + long + "\n", 1},
		{"the output of an example", "\t// Output:\n\t// " + long + "\n\t// " + long + "\n", 0},
		{"a comment after an output", "\t// Output:\n}\n\n// " + long + "\n", 1},
		{"a long word", "// " + strings.Repeat("a", 100) + "\n", 0},
		{"a directive", "//go:generate " + long + "\n", 0},
		{"behind code", "x := 1 // " + long + "\n", 0},
		{"in a raw string", "x := `\n// " + long + "\n`\n// " + long + "\n", 1},
	} {
		if got := comments(row.source); len(got) != row.want {
			t.Errorf("%s: %v, want %d", row.name, got, row.want)
		}
	}
}

func TestALineOfMarkdownIsASentence(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		want       string
	}{
		{"a sentence a line", "One sentence.\nAnother, with `a. B` in it.\n", ""},
		{"a clause a line", "A long sentence,\nin two clauses.\n", ""},
		{"two sentences", "One sentence. Another.\n", "more than one sentence"},
		{"two in an item", "1. One sentence. `Another`.\n", "more than one sentence"},
		{"a wrapped line", "A sentence that was\nwrapped.\n", "within a clause"},
		{"items", "* an item\n* another\n", ""},
		{"a table", "| A. B |\n|---|\n| c. D |\n", ""},
		{"code", "```\nA. B\nc\n```\n", ""},
		{"a heading", "# A. B\nc.\n", ""},
		{"an abbreviation", "Words, e.g. Go.\n", ""},
	} {
		got := sentences(row.text)
		if row.want == "" && len(got) > 0 || row.want != "" && (len(got) != 1 || !strings.Contains(got[0].text, row.want)) {
			t.Errorf("%s: %v, want %q", row.name, got, row.want)
		}
	}
}

func TestOnlyUnfinishedFilesMayBreakTheRules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("bad.md", "One. Two.\n")
	write("good.md", "One.\n")
	if got := run(dir, false); got != 1 {
		t.Errorf("a place that is not listed: exit code %d, want 1", got)
	}
	write(unfinished, "bad.md\ngood.md\n")
	if got := run(dir, true); got != 0 {
		t.Errorf("a place that is listed: exit code %d, want 0", got)
	}
	list, err := os.ReadFile(filepath.Join(dir, unfinished))
	if err != nil || string(list) != "bad.md\n" {
		t.Errorf("the list is %q, %v, want bad.md alone", list, err)
	}
	write("other.md", "One. Two.\n")
	if got := run(dir, true); got != 1 {
		t.Errorf("-list with a new place: exit code %d, want 1: the list only shrinks", got)
	}
}
