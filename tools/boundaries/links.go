package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// pkg is the part of a package that the checks use.
type pkg struct {
	path    string   // below the root
	imports []string // of code that is not a test
	tests   []string // of tests
	deps    []string // everything that the code needs, directly or through others
}

// loadPackages returns the packages of modules, by their folders.
func loadPackages(ctx context.Context, dir, work string, folders []string) ([]pkg, error) {
	args := []string{"list", "-json=ImportPath,Imports,TestImports,XTestImports,Deps"}
	for _, folder := range folders {
		args = append(args, "./"+folder+"/...")
	}
	out, err := runGo(ctx, dir, work, args...)
	if err != nil {
		return nil, err
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath                               string
			Imports, TestImports, XTestImports, Deps []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, fmt.Errorf("output of go list: %w", err)
		}
		pkgs = append(pkgs, pkg{
			path: strings.TrimPrefix(p.ImportPath, root), imports: p.Imports, tests: slices.Concat(p.TestImports, p.XTestImports), deps: p.Deps,
		})
	}
}

// checkLinks returns the published packages that link testing, and those of core that
// link net/http: an adapter for another transport does not pay for it. An internal
// package is linked through one that is not. Fiber's own utils need testing, and the
// suites are libraries of tests.
func checkLinks(pkgs []pkg) []string {
	var bad []string
	for _, p := range pkgs {
		never := []string{"testing"}
		switch {
		case !published(p.path) || strings.Contains(p.path+"/", "/internal/"),
			within(p.path, "adapters/fiber"), within(p.path, "conformance"), within(p.path, "reprisetest"):
			continue
		case within(p.path, "core"):
			never = append(never, "net/http")
		}
		for _, needed := range never {
			if slices.Contains(p.deps, needed) {
				bad = append(bad, fmt.Sprintf("%s: links %s, directly or through others", p.path, needed))
			}
		}
	}
	return bad
}
