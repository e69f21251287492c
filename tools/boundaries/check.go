package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// check returns what breaks the rules, one sentence each, sorted and without repetition.
func check(modules []module, pkgs []pkg) []string {
	var bad []string
	for _, p := range pkgs {
		bad = append(bad, checkPackage(p)...)
	}
	oldest := oldestVersions(modules)
	for _, m := range modules {
		bad = append(bad, checkModule(m, pkgs, oldest)...)
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

// oldestVersions returns the frameworks and clients that published modules require, with
// the version that each asks for.
func oldestVersions(modules []module) map[string]string {
	oldest := map[string]string{}
	for _, m := range modules {
		if r, ok := roomOf(m.path); ok && !r.free {
			for _, framework := range m.direct {
				if slices.Contains(exclusive, framework) {
					oldest[framework] = m.versions[framework]
				}
			}
		}
	}
	return oldest
}

func checkPackage(p pkg) []string {
	if p.broken != "" {
		return []string{p.path + ": cannot be loaded: " + p.broken}
	}
	r, ok := roomOf(p.path)
	if !ok {
		return []string{p.path + ": belongs to no room; give its folder a row in tools/boundaries/rules.go"}
	}
	var bad []string
	report := func(format string, args ...any) {
		bad = append(bad, p.path+": "+fmt.Sprintf(format, args...))
	}
	if r.free {
		if frameworks := frameworksIn(p.imports); len(frameworks) > 1 {
			report("imports %s: code outside tests takes one framework, so that one that is refused takes down only itself", strings.Join(frameworks, " and "))
		}
		if frameworks := frameworksIn(slices.Concat(p.imports, p.tests)); len(frameworks) > 0 && !allows(frameworkRooms, root+p.path) {
			report("imports %s, which only %s may", strings.Join(frameworks, " and "), strings.Join(frameworkRooms, ", "))
		}
		return bad
	}
	for _, imported := range p.imports {
		if !isStandard(imported) && !allows(r.imports, imported) {
			report("imports %s, which the room %s may not", imported, r.folder)
		}
	}
	inTests := with(r.imports, r.tests...)
	for _, imported := range p.tests {
		if !isStandard(imported) && imported != root+p.path && !allows(inTests, imported) {
			report("its tests import %s, which the tests of the room %s may not", imported, r.folder)
		}
	}
	for _, needed := range p.deps {
		if slices.Contains(r.never, needed) {
			report("needs %s, directly or through others, which the room %s may not", needed, r.folder)
		}
	}
	return bad
}

// frameworksIn returns the adapters and the frameworks that are among imports, each by
// the folder of its adapter.
func frameworksIn(imports []string) []string {
	found := map[string]bool{}
	for _, r := range rooms {
		name, isAdapter := strings.CutPrefix(r.folder, "adapters/")
		if !isAdapter || name == "nethttp" {
			continue
		}
		for _, imported := range imports {
			if within(imported, root+r.folder) || slices.ContainsFunc(exclusive, func(framework string) bool {
				return within(imported, framework) && allows(r.imports, framework)
			}) {
				found[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func checkModule(m module, pkgs []pkg, oldest map[string]string) []string {
	var bad []string
	report := func(format string, args ...any) {
		bad = append(bad, m.path+"/go.mod: "+fmt.Sprintf(format, args...))
	}
	r, ok := roomOf(m.path)
	if !ok {
		report("belongs to no room; give its folder a row in tools/boundaries/rules.go")
		return bad
	}
	if !slices.Contains(goVersions, m.goVersion) {
		report("go %s, want one of %s", m.goVersion, strings.Join(goVersions, ", "))
	}
	if m.toolchain != "" {
		report("toolchain %s: consumers choose their own", m.toolchain)
	}
	for _, required := range m.direct {
		folder, ours := strings.CutPrefix(required, root)
		if got := m.replaced[required]; ours && (!strings.HasPrefix(got, ".") || path.Join(m.path, got) != folder) {
			report("requires %s and replaces it by %q, want the relative path of its folder", required, got)
		}
	}
	if r.free {
		for _, framework := range exclusive {
			if got, want := m.versions[framework], oldest[framework]; got != "" && want != "" && got != want {
				report("requires %s %s, want %s as the published modules: the tests run on the oldest", framework, got, want)
			}
		}
		return bad
	}
	used := usedModules(m, pkgs)
	for _, required := range m.direct {
		if !used[required] {
			report("requires %s, which no code outside tests imports", required)
		}
	}
	for _, linked := range m.graph {
		if slices.Contains(exclusive, linked) && !allows(r.imports, linked) {
			report("has %s in its module graph", linked)
		}
	}
	return bad
}

// usedModules returns which direct requirements of m provide a package that m's code
// outside tests imports.
func usedModules(m module, pkgs []pkg) map[string]bool {
	used := map[string]bool{}
	for _, p := range pkgs {
		if p.module != m.path {
			continue
		}
		for _, imported := range p.imports {
			provider := "" // the longest path wins: modules nest
			for _, candidate := range m.direct {
				if within(imported, candidate) && len(candidate) > len(provider) {
					provider = candidate
				}
			}
			used[provider] = true
		}
	}
	return used
}
