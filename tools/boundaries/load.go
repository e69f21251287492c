package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/tools/internal/available"
)

// A module is what the checks need of one go.mod.
type module struct {
	path      string // below the root, such as "adapters/gin"
	goVersion string
	toolchain string
	direct    []string          // the requirements without an "// indirect" comment
	versions  map[string]string // of what it requires
	replaced  map[string]string // by module path
	graph     []string          // every module of its graph, alone; nil if the proxy refuses one of them
}

// A pkg is what the checks need of one package of the project.
type pkg struct {
	path    string   // below the root
	module  string   // the module that it is part of, below the root
	imports []string // of every file that is not a test, whatever its build constraints
	tests   []string // of every test
	deps    []string // everything that it needs here, directly or through others, without its tests
	broken  string   // why it could not be loaded; empty also if it needs what the proxy refuses
}

// load reads the workspace at dir, as far as the module proxy serves what it needs.
func load(ctx context.Context, dir string) (*available.Result, []module, []pkg, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	folders, err := workspaceFolders(ctx, dir)
	if err != nil {
		return nil, nil, nil, err
	}
	out, err := os.MkdirTemp("", "boundaries")
	if err != nil {
		return nil, nil, nil, err
	}
	defer os.RemoveAll(out)
	served, err := available.Look(ctx, dir, "go.work", out)
	if err != nil {
		return nil, nil, nil, err
	}
	modules := make([]module, 0, len(folders))
	for _, folder := range folders {
		m, err := loadModule(ctx, dir, folder, !slices.Contains(served.NotAlone, folder))
		if err != nil {
			return nil, nil, nil, err
		}
		modules = append(modules, m)
	}
	pkgs, err := loadPackages(ctx, dir, modules, served)
	return served, modules, pkgs, err
}

// newest is the workspace with the newest frameworks and clients. What the lab has in it
// and not in go.work raises nothing there.
const newest = "lab/newest.work"

// uses returns the folders below dir that a workspace uses.
func uses(ctx context.Context, dir, work string) ([]string, error) {
	var w struct{ Use []struct{ DiskPath string } }
	if err := goJSON(ctx, dir, &w, "work", "edit", "-json", filepath.Join(dir, filepath.FromSlash(work))); err != nil {
		return nil, err
	}
	var folders []string
	for _, u := range w.Use {
		folders = append(folders, path.Join(path.Dir(work), filepath.ToSlash(u.DiskPath)))
	}
	return folders, nil
}

// workspaceFolders returns the folders that go.work uses, after looking whether a module
// stands outside it.
func workspaceFolders(ctx context.Context, dir string) ([]string, error) {
	folders, err := uses(ctx, dir, "go.work")
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, folder := range folders {
		used[folder] = true
	}
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(newest))); err == nil {
		more, err := uses(ctx, dir, newest)
		if err != nil {
			return nil, err
		}
		for _, folder := range more {
			r, known := roomOf(folder)
			used[folder] = used[folder] || known && r.free
		}
		for _, folder := range folders {
			if !slices.Contains(more, folder) {
				return nil, fmt.Errorf("module %s is in go.work and not in %s", folder, newest)
			}
		}
	}
	err = walk(dir, func(file string) error {
		folder, name := path.Split(file)
		if folder = path.Clean(folder); name == "go.mod" && !used[folder] && !slices.ContainsFunc(outside, func(o string) bool { return within(folder, o) }) {
			return fmt.Errorf("module %s is not in go.work", folder)
		}
		return nil
	})
	return folders, err
}

func loadModule(ctx context.Context, dir, folder string, alone bool) (module, error) {
	var mod struct {
		Module    struct{ Path string }
		Go        string
		Toolchain string
		Require   []struct {
			Path, Version string
			Indirect      bool
		}
		Replace []struct{ Old, New struct{ Path string } }
	}
	at := filepath.Join(dir, filepath.FromSlash(folder))
	if err := goJSON(ctx, at, &mod, "mod", "edit", "-json"); err != nil {
		return module{}, err
	}
	if mod.Module.Path != root+folder {
		return module{}, fmt.Errorf("%s/go.mod: module path %s, want %s", folder, mod.Module.Path, root+folder)
	}
	m := module{path: folder, goVersion: mod.Go, toolchain: mod.Toolchain, versions: map[string]string{}, replaced: map[string]string{}}
	for _, r := range mod.Require {
		m.versions[r.Path] = r.Version
		if !r.Indirect {
			m.direct = append(m.direct, r.Path)
		}
	}
	for _, r := range mod.Replace {
		m.replaced[r.Old.Path] = r.New.Path
	}
	if !alone {
		return m, nil
	}
	out, err := runGo(ctx, at, "off", "list", "-m", "-f", "{{.Path}}", "all")
	m.graph = strings.Fields(string(out))
	return m, err
}

// loadPackages reads the packages of modules: their imports from the source, so that no
// build tag and no other operating system hides one, and what these lead to from the go
// command.
func loadPackages(ctx context.Context, dir string, modules []module, served *available.Result) ([]pkg, error) {
	pkgs, err := scan(dir, modules)
	if err != nil {
		return nil, err
	}
	args := []string{"list", "-e", "-tags=" + strings.Join(served.Tags(), ","), "-json=ImportPath,Deps,Error,DepsErrors"}
	for _, m := range modules {
		args = append(args, "./"+m.path+"/...")
	}
	out, err := runGo(ctx, dir, served.Workspace, args...)
	if err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var listed struct {
			ImportPath string
			Deps       []string
			Error      *struct{ Err string }
			DepsErrors []struct{ Err string }
		}
		if err := dec.Decode(&listed); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("output of go list: %w", err)
		}
		p, ok := pkgs[strings.TrimPrefix(listed.ImportPath, root)]
		if !ok {
			return nil, fmt.Errorf("go list found the package %s, which has no source", listed.ImportPath)
		}
		p.deps = append(p.deps, listed.Deps...)
		if slices.Contains(served.LeftOut, p.path) {
			continue
		}
		if listed.Error != nil {
			p.broken = listed.Error.Err
		} else if len(listed.DepsErrors) > 0 {
			p.broken = listed.DepsErrors[0].Err
		}
	}
	var all []pkg
	for _, p := range pkgs {
		all = append(all, *p)
	}
	return all, nil
}

func goJSON(ctx context.Context, dir string, v any, args ...string) error {
	out, err := runGo(ctx, dir, "", args...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, v); err != nil {
		return fmt.Errorf("output of go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// runGo runs the go command in dir with the given GOWORK and returns its output.
func runGo(ctx context.Context, dir, gowork string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK="+gowork)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, stderr.Bytes())
	}
	return out, nil
}
