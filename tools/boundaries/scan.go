package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// scan returns the packages of modules by their path below the root, with the imports of
// all their files. A folder whose files a build constraint excludes is a package like any
// other: the go command would pass over it in silence.
func scan(dir string, modules []module) (map[string]*pkg, error) {
	pkgs := map[string]*pkg{}
	err := walk(dir, func(file string) error {
		owner := ownerOf(file, modules)
		if owner == "" || path.Ext(file) != ".go" {
			return nil
		}
		folder := path.Dir(file)
		p := pkgs[folder]
		if p == nil {
			p = &pkg{path: folder, module: owner}
			pkgs[folder] = p
		}
		return p.addFile(filepath.Join(dir, filepath.FromSlash(file)))
	})
	return pkgs, err
}

// addFile adds the imports of one file.
func (p *pkg) addFile(file string) error {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return fmt.Errorf("imports: %w", err)
	}
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: import %s: %w", file, spec.Path.Value, err)
		}
		if strings.HasSuffix(file, "_test.go") {
			p.tests = append(p.tests, imported)
		} else {
			p.imports = append(p.imports, imported)
			p.deps = append(p.deps, imported)
		}
	}
	return nil
}

// ownerOf returns the innermost of modules that a file belongs to, or "".
func ownerOf(file string, modules []module) string {
	owner := ""
	for _, m := range modules {
		if within(file, m.path) && len(m.path) > len(owner) {
			owner = m.path
		}
	}
	return owner
}

// walk calls visit for every file below dir that the go command would look at, by its
// slash-separated path below dir.
func walk(dir string, visit func(file string) error) error {
	return fs.WalkDir(os.DirFS(dir), ".", func(file string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case file == ".":
			return nil
		case strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		return visit(file)
	})
}
