package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// prefix begins the path of every module of the project.
const prefix = "github.com/reprise-go/reprise/"

// unpublished are the folders whose modules are for the project alone. Every other module
// is published.
var unpublished = []string{"examples", "lab", "tools"}

func published(folder string) bool {
	top, _, _ := strings.Cut(folder, "/")
	return !slices.Contains(unpublished, top)
}

// A module is a folder with a go.mod.
type module struct {
	folder string // below the root, such as "adapters/gin"
	mod    *modfile.File
}

func (m module) path() string              { return prefix + m.folder }
func (m module) tag(version string) string { return m.folder + "/" + version }

// internal reports whether only modules of the project can import m: a user gets it with
// one of these, and does not meet it.
func (m module) internal() bool { return slices.Contains(strings.Split(m.folder, "/"), "internal") }

// siblings returns the folders of the published modules of the project that m requires.
func (m module) siblings() []string {
	var folders []string
	for _, r := range m.mod.Require {
		if folder, ours := strings.CutPrefix(r.Mod.Path, prefix); ours && published(folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// direct returns the modules that the code of m imports, by the comments in its go.mod.
func (m module) direct() []string {
	var paths []string
	for _, r := range m.mod.Require {
		if !r.Indirect {
			paths = append(paths, r.Mod.Path)
		}
	}
	return paths
}

func foldersOf(modules []module) []string {
	folders := make([]string, 0, len(modules))
	for _, m := range modules {
		folders = append(folders, m.folder)
	}
	return folders
}

// goModFolders returns the folders below the root that have a go.mod.
func goModFolders(ctx context.Context, tree *repository) ([]string, error) {
	files, err := tree.git(ctx, "ls-files", "*go.mod")
	if err != nil {
		return nil, err
	}
	var folders []string
	for file := range strings.Lines(files) {
		folder, name := path.Split(strings.TrimSpace(file))
		if name == "go.mod" && !strings.Contains(folder, "testdata/") {
			folders = append(folders, path.Clean(folder))
		}
	}
	return folders, nil
}

func readModule(dir, folder string) (module, error) {
	name := filepath.Join(dir, filepath.FromSlash(folder), "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return module{}, err
	}
	mod, err := modfile.Parse(name, text, nil)
	if err != nil {
		return module{}, err
	}
	m := module{folder, mod}
	if mod.Module == nil || mod.Module.Mod.Path != m.path() {
		return module{}, refuse("%s/go.mod does not name the module %s", folder, m.path())
	}
	return m, nil
}

// write writes the go.mod.
func (m module) write(dir string) error {
	m.mod.Cleanup()
	text, err := m.mod.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, filepath.FromSlash(m.folder), "go.mod"), text, 0o644)
}

// loadModules returns the published modules, each after those that it requires.
func loadModules(ctx context.Context, tree *repository) ([]module, error) {
	folders, err := goModFolders(ctx, tree)
	if err != nil {
		return nil, err
	}
	var modules []module
	for _, folder := range slices.DeleteFunc(folders, func(f string) bool { return !published(f) }) {
		m, err := readModule(tree.dir, folder)
		if err != nil {
			return nil, err
		}
		modules = append(modules, m)
	}
	return inOrder(modules)
}

// inOrder sorts modules so that each comes after those that it requires.
func inOrder(modules []module) ([]module, error) {
	var sorted []module
	done := map[string]bool{}
	for len(sorted) < len(modules) {
		before := len(sorted)
		for _, m := range modules {
			if !done[m.folder] && !slices.ContainsFunc(m.siblings(), func(s string) bool { return !done[s] }) {
				done[m.folder] = true
				sorted = append(sorted, m)
			}
		}
		if len(sorted) == before {
			left := slices.DeleteFunc(slices.Clone(modules), func(m module) bool { return done[m.folder] })
			return nil, fmt.Errorf("%s requires, directly or through others, itself or a module that is not in the tree", left[0].folder)
		}
	}
	return sorted, nil
}
