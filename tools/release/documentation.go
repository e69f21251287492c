package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// checkDocumentation refuses modules that pkg.go.dev would show to users without a
// README, with a README whose links lead nowhere from there, without a package comment,
// or without an example that runs.
func checkDocumentation(dir string, modules []module) error {
	var reasons refusal
	tree := os.DirFS(dir)
	for _, m := range modules {
		if m.internal() {
			continue
		}
		more, err := missingDocumentation(tree, m)
		if err != nil {
			return err
		}
		reasons = append(reasons, more...)
	}
	if len(reasons) > 0 {
		return reasons
	}
	return nil
}

func missingDocumentation(tree fs.FS, m module) (refusal, error) {
	var reasons refusal
	report := func(format string, args ...any) { reasons = append(reasons, m.folder+" "+fmt.Sprintf(format, args...)) }
	files, err := fs.Sub(tree, m.folder)
	if err != nil {
		return nil, err
	}

	switch readme, err := fs.ReadFile(files, "README.md"); {
	case errors.Is(err, fs.ErrNotExist):
		report("has no README.md")
	case err != nil:
		return nil, err
	default:
		if !strings.Contains(string(readme), "go get "+m.path()) && !strings.Contains(string(readme), "go install "+m.path()) {
			report("has a README.md without \"go get %s\"", m.path())
		}
		for _, link := range brokenLinks(tree, string(readme)) {
			report("has a README.md with the link %s, which leads nowhere on pkg.go.dev: make it the absolute one of a file that exists", link)
		}
	}

	described, examples := false, false
	err = walkGo(files, func(name string, file *ast.File) {
		test := strings.HasSuffix(name, "_test.go")
		described = described || !test && path.Dir(name) == "." && file.Doc != nil
		examples = examples || test && slices.ContainsFunc(doc.Examples(file), func(e *doc.Example) bool { return e.Output != "" || e.EmptyOutput })
	})
	if !described {
		report("has no package comment")
	}
	if !examples {
		report("has no Example whose output is checked")
	}
	return reasons, err
}

var (
	// link matches the target of an inline link or of a reference.
	link = regexp.MustCompile(`(?m)\]\(([^)\s]+)|^\[[^\]]+\]:\s*(\S+)`)

	// ours matches the address of a file or folder of the project.
	ours = regexp.MustCompile(`^https://` + regexp.QuoteMeta(prefix) + `(?:blob|tree)/main/([^#]+)`)
)

// brokenLinks returns the links of a page that depend on its place in the tree, or name a
// file that is not in it.
func brokenLinks(tree fs.FS, page string) []string {
	var broken []string
	for _, match := range link.FindAllStringSubmatch(page, -1) {
		target := match[1] + match[2]
		ok := strings.HasPrefix(target, "https://") || strings.HasPrefix(target, "#")
		if file := ours.FindStringSubmatch(target); file != nil {
			_, err := fs.Stat(tree, path.Clean(file[1]))
			ok = err == nil
		}
		if !ok {
			broken = append(broken, target)
		}
	}
	return broken
}

// walkGo calls look with every Go file of a module that its users can see.
func walkGo(files fs.FS, look func(name string, file *ast.File)) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, err := fs.Stat(files, path.Join(name, "go.mod"))
			if name != "." && err == nil || entry.Name() == "internal" || entry.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil {
			look(name, file)
		}
		return err
	})
}
