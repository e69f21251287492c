package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	gomodule "golang.org/x/mod/module"
)

// prepare makes the commit of the release in the clone, packs each module, and tags it.
//
// A go.sum holds the hashes of the zips of the siblings, and is itself part of the zip of
// its module. The modules therefore come in the order of their requirements, and each is
// packed from a tree in which everything before it is final.
func (r *release) prepare(ctx context.Context) error {
	r.proxy = &proxy{dir: filepath.Join(r.work, "proxy"), sums: map[gomodule.Version]string{}}
	for _, m := range r.modules {
		if err := r.require(m); err != nil {
			return err
		}
		if err := r.addSums(m); err != nil {
			return err
		}
		tree, err := r.tree(ctx)
		if err != nil {
			return err
		}
		if err := r.proxy.publish(r.clone.dir, tree, m, r.version); err != nil {
			return err
		}
	}
	if err := r.requireElsewhere(ctx); err != nil {
		return err
	}
	if _, err := r.clone.git(ctx, "commit", "--quiet", "--all", "--allow-empty", "--message", "Release "+r.version); err != nil {
		return err
	}
	for _, m := range r.modules {
		// The entry has lines that begin with "#", which are no comments.
		if _, err := r.clone.gitWith(ctx, r.version+"\n\n"+r.entry+"\n", "tag", "--annotate", "--cleanup=whitespace", "--file=-", m.tag(r.version)); err != nil {
			return err
		}
	}
	r.say("packed and tagged %d modules in a clone", len(r.modules))
	return nil
}

// tree returns the tree of the files in the clone.
func (r *release) tree(ctx context.Context) (string, error) {
	if _, err := r.clone.git(ctx, "add", "--all"); err != nil {
		return "", err
	}
	return r.clone.git(ctx, "write-tree")
}

// require makes the go.mod of a module require the published siblings at the version of
// the release. A published one loses its replace lines: the go command ignores them in a
// dependency, and refuses to install a program that has one.
func (r *release) require(m module) error {
	for _, folder := range m.siblings() {
		if err := m.mod.AddRequire(prefix+folder, r.version); err != nil {
			return err
		}
	}
	if published(m.folder) {
		for _, replace := range slices.Clone(m.mod.Replace) {
			if !strings.HasPrefix(replace.Old.Path, prefix) {
				return refuse("%s/go.mod replaces %s: consumers of the module do not get the replacement", m.folder, replace.Old.Path)
			}
			if err := m.mod.DropReplace(replace.Old.Path, replace.Old.Version); err != nil {
				return err
			}
		}
	}
	return m.write(r.clone.dir)
}

// requireElsewhere changes the modules that are not published: they keep their
// replacements, and agree with the others about versions.
func (r *release) requireElsewhere(ctx context.Context) error {
	folders, err := goModFolders(ctx, r.clone)
	if err != nil {
		return err
	}
	for _, folder := range slices.DeleteFunc(folders, published) {
		m, err := readModule(r.clone.dir, folder)
		if err != nil {
			return err
		}
		if err := r.require(m); err != nil {
			return err
		}
	}
	return nil
}

// addSums adds the hashes of the siblings to the go.sum of a module.
func (r *release) addSums(m module) error {
	siblings := m.siblings()
	if len(siblings) == 0 {
		return nil
	}
	name := filepath.Join(r.clone.dir, filepath.FromSlash(m.folder), "go.sum")
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var versions []gomodule.Version
	lines := map[gomodule.Version]string{}
	add := func(v gomodule.Version, line string) { versions, lines[v] = append(versions, v), line }
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 {
			add(gomodule.Version{Path: fields[0], Version: fields[1]}, strings.TrimSpace(line))
		}
	}
	for _, folder := range siblings {
		for _, suffix := range []string{"", "/go.mod"} {
			v := gomodule.Version{Path: prefix + folder, Version: r.version + suffix}
			add(v, v.Path+" "+v.Version+" "+r.proxy.sums[v])
		}
	}
	gomodule.Sort(versions) // as the go command does
	var sums bytes.Buffer
	for _, v := range slices.Compact(versions) {
		sums.WriteString(lines[v] + "\n")
	}
	return os.WriteFile(name, sums.Bytes(), 0o644)
}
