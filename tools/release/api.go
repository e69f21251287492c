package main

import (
	"context"
	"fmt"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/packages"
)

// checkAPI refuses incompatible changes since the last release whose names the entry in
// CHANGELOG.md does not mention.
func (r *release) checkAPI(ctx context.Context) error {
	if r.last == "" {
		r.say("api: this is the first release; there is nothing to compare it with")
		return nil
	}
	before := &repository{dir: filepath.Join(r.work, "last"), env: r.clone.env}
	if _, err := r.clone.git(ctx, "worktree", "add", "--quiet", "--detach", before.dir, "refs/tags/core/"+r.last); err != nil {
		return err
	}
	old, err := loadModules(ctx, before)
	if err != nil {
		return err
	}
	if err := replaceSiblings(before.dir, old); err != nil {
		return err
	}
	was, err := r.loadAPI(ctx, before.dir, old)
	if err != nil {
		return err
	}
	is, err := r.loadAPI(ctx, r.clone.dir, r.modules)
	if err != nil {
		return err
	}
	if len(r.leftOut) > 0 {
		return nil // a package that could not be loaded would seem to be removed
	}
	changes := incompatible(was, is)
	r.say("api: %d incompatible changes since %s", len(changes), r.last)
	var reasons refusal
	for _, change := range changes {
		if !change.mentioned(r.entry) {
			reasons = append(reasons, fmt.Sprintf("the API changed incompatibly since %s, and CHANGELOG.md does not mention %s: %s", r.last, change.name, change))
		}
	}
	if len(reasons) > 0 {
		return reasons
	}
	return nil
}

// An apiChange is an incompatible change of a package.
type apiChange struct {
	pkg     string // its path below the root
	name    string // the last part of the changed name, or of the package's path
	message string
}

func (c apiChange) String() string { return c.pkg + ": " + c.message }

// mentioned reports whether an entry of the changelog has the name as a word.
func (c apiChange) mentioned(entry string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(c.name) + `\b`).MatchString(entry)
}

// incompatible returns the incompatible changes between two sets of packages by their
// path.
func incompatible(was, is map[string]*types.Package) []apiChange {
	var changes []apiChange
	for path, old := range was {
		pkg := strings.TrimPrefix(path, prefix)
		now, there := is[path]
		if !there {
			changes = append(changes, apiChange{pkg, pkg[strings.LastIndexByte(pkg, '/')+1:], "package removed"})
			continue
		}
		for _, change := range apidiff.Changes(old, now).Changes {
			if !change.Compatible {
				name, _, _ := strings.Cut(change.Message, ":")
				changes = append(changes, apiChange{pkg, name[strings.LastIndexByte(name, '.')+1:], change.Message})
			}
		}
	}
	slices.SortFunc(changes, func(a, b apiChange) int { return strings.Compare(a.String(), b.String()) })
	return changes
}

// loadAPI returns the packages of modules that others can import, by their path.
func (r *release) loadAPI(ctx context.Context, dir string, modules []module) (map[string]*types.Package, error) {
	loaded := make([][]*packages.Package, len(modules))
	err := r.inParallel(ctx, len(modules), func(ctx context.Context, i int) (string, error) {
		var err error
		loaded[i], err = loadModuleAPI(ctx, dir, modules[i])
		return modules[i].folder + ": its API was not compared", err
	})
	api := map[string]*types.Package{}
	for _, p := range slices.Concat(loaded...) {
		if p.Name != "main" && !slices.Contains(strings.Split(p.PkgPath, "/"), "internal") {
			api[p.PkgPath] = p.Types
		}
	}
	return api, err
}

// loadModuleAPI loads the packages of a module without the workspace, which would raise
// its requirements to those of other modules.
func loadModuleAPI(ctx context.Context, dir string, m module) ([]*packages.Package, error) {
	loaded, err := packages.Load(&packages.Config{
		Context: ctx, Dir: filepath.Join(dir, filepath.FromSlash(m.folder)), Env: append(environment(), "GOWORK=off", "GOFLAGS=-trimpath -buildvcs=false"),
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps | packages.NeedExportFile,
	}, "./...")
	if err != nil {
		return nil, refusedOr(err.Error(), err)
	}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, refusedOr(p.Errors[0].Error(), fmt.Errorf("%s cannot be loaded: %w", p.PkgPath, p.Errors[0]))
		}
	}
	return loaded, nil
}

// replaceSiblings makes the modules of a release take their siblings from its tree, as
// they do on the branch.
func replaceSiblings(dir string, modules []module) error {
	for _, m := range modules {
		for _, sibling := range m.siblings() {
			if err := m.mod.AddReplace(prefix+sibling, "", filepath.Join(dir, filepath.FromSlash(sibling)), ""); err != nil {
				return err
			}
		}
		if err := m.write(dir); err != nil {
			return err
		}
	}
	return nil
}
