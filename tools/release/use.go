package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// use is a user of everything that is released.
func (r *release) use(ctx context.Context) error {
	u, err := newConsumer(ctx, filepath.Join(r.work, "user"), r.proxy)
	if err != nil {
		return err
	}
	err = r.inParallel(ctx, 1, func(ctx context.Context, _ int) (string, error) {
		return "cmd/reprise: not installed", r.install(ctx, u)
	})
	if err != nil {
		return err
	}
	if err := r.runPrograms(ctx, u); err != nil {
		return err
	}
	err = r.each(ctx, "not tried from an empty module", func(ctx context.Context, m module) error {
		if m.internal() {
			return nil
		}
		return r.try(ctx, u, m)
	})
	if err == nil {
		r.say("each from an empty module: go get, build, examples, and no module in the graph that its code does not need")
	}
	return err
}

// try gets a module into an empty one, builds its packages, runs their examples, and
// looks at the module graph.
func (r *release) try(ctx context.Context, u *consumer, m module) error {
	dir, err := u.newModule(ctx, strings.ReplaceAll(m.folder, "/", "-"))
	if err != nil {
		return err
	}
	if _, err := u.run(ctx, dir, "get", "-t", m.path()+"/...@"+r.version); err != nil {
		return err
	}
	if err := r.checkGraph(ctx, u, dir, []module{m}); err != nil {
		return err
	}
	if _, err := u.run(ctx, dir, "build", "-o", os.DevNull, m.path()+"/..."); err != nil {
		return err
	}
	folders, err := withExamples(os.DirFS(filepath.Join(r.clone.dir, filepath.FromSlash(m.folder))))
	if err != nil {
		return err
	}
	args := []string{"test", "-vet=off", "-run", "^Example"}
	for _, folder := range folders {
		args = append(args, path.Join(m.path(), folder))
	}
	_, err = u.run(ctx, dir, args...)
	return err
}

// withExamples returns the folders of the packages of a module that have examples.
func withExamples(files fs.FS) ([]string, error) {
	var folders []string
	err := walkGo(files, func(name string, file *ast.File) {
		if folder := path.Dir(name); strings.HasSuffix(name, "_test.go") && len(doc.Examples(file)) > 0 && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	})
	return folders, err
}

// newModule makes an empty module in the user's home and returns its folder.
func (u *consumer) newModule(ctx context.Context, name string) (string, error) {
	dir := filepath.Join(u.home, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	_, err := u.run(ctx, dir, "mod", "init", consumerPath)
	return dir, err
}

// checkGraph refuses modules that a consumer in dir got beyond those that it asked for,
// of the release and others, which are given by their paths.
func (r *release) checkGraph(ctx context.Context, u *consumer, dir string, asked []module, others ...string) error {
	out, err := u.run(ctx, dir, "mod", "graph")
	if err != nil {
		return err
	}
	g := parseGraph(out)
	needed := g.closure(others)
	if found := slices.DeleteFunc(g.strangers(asked, r.modules), func(path string) bool { return needed[path] }); len(found) > 0 {
		return refuse("a consumer of %s also gets %s, which its code does not need", strings.Join(foldersOf(asked), " and "), strings.Join(found, ", "))
	}
	return nil
}

// install installs the operator's program and asks it for its version.
func (r *release) install(ctx context.Context, u *consumer) error {
	if _, err := u.run(ctx, u.home, "install", prefix+"cmd/reprise@"+r.version); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(u.home, "bin", "reprise"), "version", "--json").Output()
	if err != nil {
		return fmt.Errorf("reprise version: %w", err)
	}
	var got struct{ Version string }
	if err := json.Unmarshal(out, &got); err != nil {
		return fmt.Errorf("reprise version: %w", err)
	}
	if got.Version != r.version {
		return fmt.Errorf("reprise version says %s, want %s", got.Version, r.version)
	}
	r.say("go install %scmd/reprise@%s: its version is %s", prefix, r.version, got.Version)
	return nil
}
