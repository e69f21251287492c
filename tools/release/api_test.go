package main

import (
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

func TestIncompatibleChangesWantAWordInTheChangelog(t *testing.T) {
	t.Parallel()
	const removed = "// Package core has a question.\npackage core\n\nfunc Question() int { return 42 }\n"
	for name, row := range map[string]struct {
		file, text string
		entry      string
		want       string // empty: it is released
	}{
		"a compatible change":        {file: "core/more.go", text: "package core\n\nfunc More() {}\n", entry: "More."},
		"a mentioned change":         {file: "core/core.go", text: removed, entry: "`core.Answer` is now `Question`."},
		"a change without a word":    {file: "core/core.go", text: removed, entry: "Answers are better.", want: "the API changed incompatibly since v0.1.0, and CHANGELOG.md does not mention Answer: core: Answer: removed"},
		"a package that is gone":     {file: "core/extra/extra.go", entry: "Less.", want: "does not mention extra: core/extra: package removed"},
		"an internal package":        {file: "core/internal/deep/deep.go", text: "package deep\n\nfunc Other() {}\n", entry: "Nothing to see."},
		"a change of a type's field": {file: "core/extra/extra.go", text: "package extra\n\ntype T struct{ F string }\n", entry: "Less.", want: "does not mention F: core/extra: T.F: changed from int to string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newProject(t)
			tree.Write(t, dir, "core/extra/extra.go", "package extra\n\ntype T struct{ F int }\n")
			tree.Write(t, dir, "core/internal/deep/deep.go", "package deep\n\nfunc Deep() {}\n")
			commit(t, dir)
			git(t, dir, "tag", "core/v0.1.0")

			if row.text == "" {
				git(t, dir, "rm", "--quiet", row.file)
			} else {
				tree.Write(t, dir, row.file, row.text)
			}
			if row.file == "core/core.go" { // and its callers
				tree.Write(t, dir, "adapters/nethttp/nethttp.go", "// Package nethttp asks core.\npackage nethttp\n\nimport \""+prefix+"core\"\n\nfunc Ask() int { return core.Question() }\n")
				tree.Write(t, dir, "core/example_test.go", example("core", "core.Question()", "42"))
			}
			tree.Write(t, dir, "CHANGELOG.md", "# Changelog\n\n## [0.2.0] - 2026-11-23\n\n- "+row.entry+"\n")
			commit(t, dir)

			r := begin(t, dir, "v0.2.0", false)
			err := r.steps(t.Context(), r.copy, r.check, r.checkAPI)
			if row.want != "" {
				wantRefusal(t, err, row.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}
