package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
)

// A proxy is a folder that the go command reads as a module proxy.
type proxy struct {
	dir  string
	sums map[gomodule.Version]string // the hashes for go.sum, by module and version
}

// publish packs a module from a tree of a repository, as the go command packs it from its
// tag: the files of its folder in git, without modules below it, and with the LICENSE of
// the root.
func (p *proxy) publish(repository, tree string, m module, version string) error {
	v := gomodule.Version{Path: m.path(), Version: version}
	escaped, err := gomodule.EscapePath(v.Path)
	if err != nil {
		return err
	}
	dir := filepath.Join(p.dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := modzip.CreateFromVCS(&packed, v, repository, tree, m.folder); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(m.folder), "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": mod, version + ".zip": packed.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return p.sum(v, mod, packed.Bytes())
}

// sum computes the hashes of a module, after a look whether its license is in it.
func (p *proxy) sum(v gomodule.Version, mod, packed []byte) error {
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return err
	}
	var names []string
	for _, file := range archive.File {
		names = append(names, file.Name)
	}
	if !slices.Contains(names, v.String()+"/LICENSE") {
		return refuse("%s has no LICENSE in its zip: pkg.go.dev would not show its documentation", v)
	}
	modSum, err1 := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(mod)), nil
	})
	zipSum, err2 := dirhash.Hash1(names, func(name string) (io.ReadCloser, error) { return archive.Open(name) })
	p.sums[v] = zipSum
	p.sums[gomodule.Version{Path: v.Path, Version: v.Version + "/go.mod"}] = modSum
	return errors.Join(err1, err2)
}
